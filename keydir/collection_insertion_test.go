package keydir_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// insertionOrder is the order that the elements of a hash or set must have.
type insertionOrder struct {
	order    []string
	ordered  bool // it has one
	upper    map[uint32]string
	collided bool
}

func newMembers(f keydir.Collection) *members {
	order := insertionOrder{ordered: true, upper: map[uint32]string{}}
	return &members{f, map[string]element{}, order}
}

// number returns the value of a name that is an integer.
func number(name string) (int64, bool) {
	v, err := strconv.ParseInt(name, 10, 64)
	return v, err == nil && strconv.FormatInt(v, 10) == name
}

// add puts a new element where it belongs in the order.
func (m *members) add(name string) {
	upper := uint32(m.f.HashOf(name) >> 32)
	if had, ok := m.upper[upper]; ok && had != name {
		m.collided = true
	}
	m.upper[upper] = name
	value, isNumber := number(name)
	place := len(m.order)
	if isNumber && m.f.Type() == keydir.Set && m.ascend() {
		place, _ = slices.BinarySearchFunc(m.order, value, func(name string, value int64) int {
			have, _ := number(name)
			return cmp.Compare(have, value)
		})
	}
	m.order = slices.Insert(m.order, place, name)
}

// ascend reports whether all elements are integers in ascending order.
func (m *members) ascend() bool {
	last := int64(math.MinInt64)
	for _, name := range m.order {
		value, ok := number(name)
		if !ok || value < last {
			return false
		}
		last = value
	}
	return true
}

// follow notes whether the collection is ordered. One that was not begins again with the order that it has.
func (m *members) follow() {
	if scored(m.f) {
		return
	}
	if ordered := keydir.Ordered(m.f); ordered != m.ordered {
		m.ordered, m.order = ordered, m.order[:0]
		m.f.Each(func(elem []byte, _ keydir.Loc) bool {
			m.order = append(m.order, string(elem))
			return true
		})
	}
}

// equalOrder compares the order of the elements, unless upper halves of hashes have been equal.
func (m *members) equalOrder(t *testing.T) {
	t.Helper()
	if scored(m.f) || !m.ordered || m.collided {
		return
	}
	i := 0
	m.f.Each(func(elem []byte, _ keydir.Loc) bool {
		if string(elem) != m.order[i] {
			t.Fatalf("each: element %d is %q, want %q", i, elem, m.order[i])
		}
		i++
		return true
	})
}

func orderOf(f keydir.Collection) (order []string) {
	f.Each(func(elem []byte, _ keydir.Loc) bool {
		order = append(order, string(elem))
		return true
	})
	return order
}

// reloaded returns the collection after its stripe was dumped, in pieces of about that many bytes, and loaded.
func reloaded(t *testing.T, d *keydir.Directory, h uint64, key string, piece int) keydir.Collection {
	t.Helper()
	f, ok := reload(t, d, keydir.Seed{1, 2}, 64, piece).FindCollection(h, key)
	if !ok {
		t.Fatal("not loaded")
	}
	return f
}

// TestOrderIsKept: up to 512 elements of 64 bytes have their order, of one more none, and then its memory is free.
func TestOrderIsKept(t *testing.T) {
	const h = 7
	for _, typ := range []keydir.Type{keydir.Hash, keydir.Set} {
		for _, n := range []int{2, 10, 100, 512} {
			t.Run(fmt.Sprint(typ, n), func(t *testing.T) {
				r := chance.Rand(t)
				d := keydir.NewDirectory(keydir.Seed{1, 2})
				f := d.NewCollection(h, typ, "key")
				var want []string
				for _, i := range r.Perm(n) {
					name := fmt.Sprintf("%064d", i)
					f.Put(name, keydir.Loc(i+1))
					want = append(want, name)
				}
				f.Put(want[0], 3) // keeps its place
				f.Delete(want[1])
				f.Put(want[1], 4)
				want = append(slices.Delete(slices.Clone(want), 1, 2), want[1])
				check(t, d)
				for _, f := range []keydir.Collection{f, reloaded(t, d, h, "key", 50), reloaded(t, d, h, "key", 1<<20)} {
					if have := orderOf(f); !slices.Equal(have, want) {
						t.Fatalf("order is %q, want %q", have, want)
					}
				}
				for i := n; i < 512; i++ {
					f.Put(fmt.Sprint(i), 1)
				}
				if !keydir.Ordered(f) {
					t.Fatal("512 elements have no order")
				}
				for i := 0; ; i++ { // one of these elements needs no page of its own
					with, name := f.Bytes(), fmt.Sprint("another", i)
					_, _, place := f.PutNoted(name, 1)
					check(t, d)
					if keydir.Ordered(f) {
						t.Fatal("513 elements have an order")
					}
					if f.Bytes() <= with-4*512+100 {
						break
					}
					if i == 100 {
						t.Fatalf("513 elements: %d bytes, %d with the order", f.Bytes(), with)
					}
					f.RollbackPut(name, place)
				}
			})
		}
	}
}

// TestIntegersByValue: the integers of a set that has nothing else are in order of their values; what is added once it
// has something else follows them.
func TestIntegersByValue(t *testing.T) {
	const h = 7
	for _, n := range []int{3, 100, 510} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := chance.Rand(t)
			d := keydir.NewDirectory(keydir.Seed{1, 2})
			f := d.NewCollection(h, keydir.Set, "key")
			values := []int64{math.MinInt64, math.MaxInt64, 0}
			for len(values) < n {
				values = append(values, int64(r.Uint64()))
			}
			var want []string
			for _, i := range r.Perm(n) {
				f.Put(strconv.FormatInt(values[i], 10), 1)
			}
			for _, v := range slices.Sorted(slices.Values(values)) {
				want = append(want, strconv.FormatInt(v, 10))
			}
			same := func() {
				t.Helper()
				check(t, d)
				for _, f := range []keydir.Collection{f, reloaded(t, d, h, "key", 50)} {
					if have := orderOf(f); !slices.Equal(have, want) {
						t.Fatalf("order is %q, want %q", have, want)
					}
				}
			}
			same()
			for _, name := range []string{[]string{"-0", "01", "+1", "", "-", "1 ", "9223372036854775808", "-9223372036854775809", "18446744073709551617"}[r.IntN(9)], "5"} {
				f.Put(name, 1)
				want = append(want, name)
				same()
			}
		})
	}
}

// TestOrderWithoutNames: a set of integers that had something else when they were added keeps their order, whether it
// is loaded again or not, and also once more integers come.
func TestOrderWithoutNames(t *testing.T) {
	const h = 7
	for _, n := range []int{3, 100, 400} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := chance.Rand(t)
			d := keydir.NewDirectory(keydir.Seed{1, 2})
			f := d.NewCollection(h, keydir.Set, "key")
			f.Put("name", 1)
			want := []string{"7"}
			for _, i := range r.Perm(n) {
				want = append(want, strconv.Itoa(-i))
			}
			for _, name := range want {
				f.Put(name, 1)
			}
			f.Delete("name")
			loaded := reloaded(t, d, h, "key", 1<<20)
			for range 3 {
				check(t, d)
				for _, f := range []keydir.Collection{f, loaded} {
					if have := orderOf(f); !slices.Equal(have, want) {
						t.Fatalf("order is %q, want %q", have, want)
					}
					f.Put(fmt.Sprint(len(want)), 1)
				}
				want = append(want, fmt.Sprint(len(want)))
			}
		})
	}
}

// TestLoadRefusesTwice: in an order of their own, elements could be there twice.
func TestLoadRefusesTwice(t *testing.T) {
	for _, n := range []int{2, 50, 500} {
		d := keydir.NewDirectory(keydir.Seed{1, 2})
		f := d.NewCollection(7, keydir.Hash, "key")
		for i := range n {
			f.Put(fmt.Sprintf("field%03d", i), 1)
		}
		b := dump(d, 0, 1<<20)
		load := func(b []byte) error {
			l := keydir.Loader{OnLoc: func(keydir.Loc) bool { return true }}
			return l.Load(keydir.NewDirectory(keydir.Seed{1, 2}), 0, b)
		}
		if err := load(b); err != nil {
			t.Fatal(err)
		}
		last := fmt.Sprintf("field%03d", n-1)
		if b = bytes.Replace(b, []byte(last), []byte("field000"), 1); !errors.Is(load(b), keydir.ErrDump) {
			t.Errorf("%d elements, one of them twice: %v", n, load(b))
		}
	}
}
