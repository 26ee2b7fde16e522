package keydir_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

type elements struct {
	f   keydir.Collection
	all map[int64]keydir.Loc
}

func (m *elements) put(t *testing.T, index int64, loc keydir.Loc) {
	t.Helper()
	old, existed := m.f.PutAt(index, loc)
	if was, had := m.all[index]; existed != had || old != was {
		t.Fatalf("put at %d: had %v %d, want %v %d", index, existed, old, had, was)
	}
	m.all[index] = loc
}

func (m *elements) delete(t *testing.T, index int64) {
	t.Helper()
	old, existed := m.f.DeleteAt(index)
	if was, had := m.all[index]; existed != had || old != was {
		t.Fatalf("delete at %d: had %v %d, want %v %d", index, existed, old, had, was)
	}
	delete(m.all, index)
}

// deleteRange removes a range, or removes it and puts it back.
func (m *elements) deleteRange(t *testing.T, r *rand.Rand, head, tail int64) {
	t.Helper()
	n := int64(min(uint64(tail-head), 1500))
	from := head + r.Int64N(n+2) - 1
	if r.IntN(2) == 0 {
		from = tail + 1 - r.Int64N(n+2)
	}
	to := from + r.Int64N(1+n/[]int64{1, 10}[r.IntN(2)])
	if to < from || r.IntN(500) == 0 {
		from, to = math.MinInt64, math.MaxInt64
	}
	want := map[keydir.Loc]int{}
	all := maps.Clone(m.all)
	maps.DeleteFunc(all, func(index int64, loc keydir.Loc) bool {
		in := from <= index && index <= to
		if in {
			want[loc]++
		}
		return in
	})
	removed := m.f.DeleteRange(keydir.ListPlace{Index: from}, keydir.ListPlace{Index: to})
	removed.Each(func(loc keydir.Loc) bool { want[loc]--; return true })
	for loc, n := range want {
		if n != 0 {
			t.Fatalf("from %d to %d: %v is removed %d times too few", from, to, loc, n)
		}
	}
	if n := len(m.all) - len(all); removed.Len() != n {
		t.Fatalf("from %d to %d: removed %d of %d", from, to, removed.Len(), n)
	}
	if r.IntN(2) == 0 {
		before := m.all
		m.all = all
		m.equal(t)
		m.f.RestoreRange(removed)
		m.all = before
		m.equal(t)
		return
	}
	m.all = all
	m.equal(t)
}

func (m *elements) equal(t *testing.T) {
	t.Helper()
	if m.f.Len() != len(m.all) {
		t.Fatalf("%d elements, want %d", m.f.Len(), len(m.all))
	}
	head, tail := m.f.Bounds()
	if len(m.all) == 0 && tail >= head {
		t.Fatalf("empty list from %d to %d", head, tail)
	}
	wantHead, wantTail := int64(math.MaxInt64), int64(math.MinInt64)
	var got, want []keydir.Loc
	for index, loc := range m.all {
		wantHead, wantTail = min(wantHead, index), max(wantTail, index)
		want = append(want, loc)
		if at, ok := m.f.LocAt(index); !ok || at != loc {
			t.Fatalf("element %d is %d, %v, want %d", index, at, ok, loc)
		}
		for _, next := range []int64{index - 1, index + 1} {
			if loc, ok := m.f.LocAt(next); loc != m.all[next] || ok != (loc != 0) {
				t.Fatalf("element %d is %d, %v, want %d", next, loc, ok, m.all[next])
			}
		}
	}
	several := make([]keydir.Loc, 1+len(m.all)%700) // of several pages now and then
	for _, first := range []int64{head, tail - 3, head - int64(len(several)) + 2} {
		m.f.LocsAt(first, several)
		for i, loc := range several {
			if index := first + int64(i); loc != m.all[index] {
				t.Fatalf("of the %d elements from %d on, element %d is %d, want %d", len(several), first, index, loc, m.all[index])
			}
		}
	}
	if len(m.all) > 0 && (head != wantHead || tail != wantTail) {
		t.Fatalf("list from %d to %d, want %d to %d", head, tail, wantHead, wantTail)
	}
	m.f.Each(func(elem []byte, loc keydir.Loc) bool {
		if elem != nil {
			t.Fatalf("list element has a name %q", elem)
		}
		got = append(got, loc)
		return true
	})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("each returns %d of %d elements", len(got), len(want))
	}
}

func TestListAgainstMap(t *testing.T) {
	index := map[string]func(r *rand.Rand, head, tail int64) int64{
		"pushed at the back":  func(r *rand.Rand, head, tail int64) int64 { return tail + 1 },
		"pushed at the front": func(r *rand.Rand, head, tail int64) int64 { return head - 1 },
		"pushed at both ends": func(r *rand.Rand, head, tail int64) int64 { return []int64{head - 1, tail + 1}[r.IntN(2)] },
		"in any order":        func(r *rand.Rand, head, tail int64) int64 { return r.Int64N(3000) - 1500 },
		"with small gaps":     func(r *rand.Rand, head, tail int64) int64 { return tail + 1 + r.Int64N(20) },
		"with great gaps":     func(r *rand.Rand, head, tail int64) int64 { return int64(r.Uint64()) },
		"at the very ends": func(r *rand.Rand, head, tail int64) int64 {
			return []int64{math.MinInt64, math.MaxInt64}[r.IntN(2)] ^ r.Int64N(9)
		},
		"at few far-off edges": func(r *rand.Rand, head, tail int64) int64 { return r.Int64N(9)<<listEdge - r.Int64N(2) },
	}
	for name, index := range index {
		for _, size := range []int{10, 200, 300, 4000} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				r := chance.Rand(t)
				d := keydir.NewDirectory(keydir.Seed{})
				m := &elements{d.NewCollection(1, keydir.List, "list"), map[int64]keydir.Loc{}}
				m.f.SetMeta(3)
				for _, deletes := range []int{0, 50, 70, 10, 90} {
					for range max(rounds(size), min(size, 600)) {
						head, tail := m.f.Bounds()
						if r.IntN(3) == 0 {
							m.move(t, r, []int64{head, tail, tail + 1, head + r.Int64N(max(1, min(tail-head+1, 5000)))}[r.IntN(4)])
						}
						switch {
						case r.IntN(40) == 0:
							m.deleteRange(t, r, head, tail)
						case r.IntN(100) >= deletes:
							m.put(t, index(r, head, tail), keydir.Loc(r.Uint64()|1))
						case r.IntN(2) == 0:
							m.delete(t, []int64{head, tail}[r.IntN(2)])
						default:
							m.delete(t, head+r.Int64N(max(1, min(tail-head+1, 5000))))
						}
					}
					check(t, d)
					m.equal(t)
				}
				for i := range m.all {
					m.delete(t, i)
				}
				check(t, d)
				m.equal(t)
				if m.f.Meta() != 3 || m.f.Key() != "list" {
					t.Error("the collection is not what it was")
				}
			})
		}
	}
}

const listEdge = 9

func TestListGapsCostNothing(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{})
	f := d.NewCollection(1, keydir.List, "list")
	for i := range int64(1000) {
		f.PutAt(i<<50, 1)
	}
	if d.Bytes() > 1000*600 {
		t.Errorf("1000 scattered elements take %d bytes", d.Bytes())
	}
}

func TestDroppedList(t *testing.T) {
	for _, n := range []int64{0, 10, 5000} {
		d := keydir.NewDirectory(keydir.Seed{})
		m := &elements{d.NewCollection(1, keydir.List, "list"), map[int64]keydir.Loc{}}
		m.f.SetMeta(1 << 40)
		for i := range n {
			m.put(t, -i, keydir.Loc(i+1))
		}
		before := d.Bytes()
		x := d.DropCollection(1, m.f)
		check(t, d)
		if x.Len() != int(n) || x.Type() != keydir.List || d.Len() != 0 {
			t.Fatalf("dropped %d elements of %d", x.Len(), n)
		}
		sum := keydir.Loc(0)
		x.Each(func(loc keydir.Loc) bool { sum += loc; return true })
		if want := keydir.Loc(1<<40 + n*(n+1)/2); sum != want {
			t.Fatalf("dropped locations add up to %d, want %d", sum, want)
		}
		if f := d.Restore(1, x); f != m.f || d.Bytes() != before || d.Len() != 1 {
			t.Fatalf("restored to %d bytes from %d", d.Bytes(), before)
		}
		check(t, d)
		m.equal(t)
	}
}
