package keydir_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// placed is an element of the model of a list: a slice in order.
type placed struct {
	at  keydir.ListPlace
	loc keydir.Loc
}

type placedList struct {
	f   keydir.Collection
	all []placed
}

func (m *placedList) search(at keydir.ListPlace) (int, bool) {
	return slices.BinarySearchFunc(m.all, at, func(p placed, at keydir.ListPlace) int { return p.at.Compare(at) })
}

func (m *placedList) put(t *testing.T, at keydir.ListPlace, loc keydir.Loc) {
	t.Helper()
	i, had := m.search(at)
	old, existed := m.f.PutPlace(at, loc)
	if existed != had || had && old != m.all[i].loc {
		t.Fatalf("put at %v: had %v %d, want %v", at, existed, old, had)
	}
	if !had {
		m.all = slices.Insert(m.all, i, placed{})
	}
	m.all[i] = placed{at, loc}
}

func (m *placedList) delete(t *testing.T, at keydir.ListPlace) {
	t.Helper()
	i, had := m.search(at)
	old, existed := m.f.DeletePlace(at)
	if existed != had || had && old != m.all[i].loc {
		t.Fatalf("delete at %v: had %v %d, want %v", at, existed, old, had)
	}
	if had {
		m.all = slices.Delete(m.all, i, i+1)
	}
}

// between returns a place between the i-th element and the one before it, if there is one.
func (m *placedList) between(i int, r *rand.Rand) (at keydir.ListPlace, ok bool) {
	if i == 0 {
		return keydir.ListPlace{Index: m.all[0].at.Index - 1}, true
	}
	at = m.all[i-1].at
	if r.IntN(2) == 0 && at.Index+1 < m.all[i].at.Index {
		return keydir.ListPlace{Index: at.Index + 1}, true // a hole
	}
	most := uint64(math.MaxUint64)
	if next := m.all[i].at; next.Index == at.Index {
		most = next.Sub - 1
	}
	room := most - at.Sub
	if room == 0 {
		return at, false
	}
	step := []uint64{1, 1 + (room-1)/2, room, 1 + r.Uint64N(min(room, 9))}[r.IntN(4)]
	return keydir.ListPlace{Index: at.Index, Sub: at.Sub + step}, true
}

// deleteRange removes a range, and puts it back now and then.
func (m *placedList) deleteRange(t *testing.T, r *rand.Rand) {
	t.Helper()
	first := r.IntN(len(m.all))
	last := min(len(m.all)-1, first+r.IntN([]int{4, 40, 2000}[r.IntN(3)]))
	from, to := m.all[first].at, m.all[last].at
	if r.IntN(4) == 0 { // what is inserted after it as well
		to.Sub = math.MaxUint64
		for last+1 < len(m.all) && m.all[last+1].at.Index == to.Index {
			last++
		}
	}
	removed := m.f.DeleteRange(from, to)
	gone := slices.Clone(m.all[first : last+1])
	if removed.Len() != len(gone) {
		t.Fatalf("from %v to %v: removed %d of %d", from, to, removed.Len(), len(gone))
	}
	var locs, want []keydir.Loc
	removed.Each(func(loc keydir.Loc) bool { locs = append(locs, loc); return true })
	for _, p := range gone {
		want = append(want, p.loc)
	}
	slices.Sort(locs)
	slices.Sort(want)
	if !slices.Equal(locs, want) {
		t.Fatalf("from %v to %v: removed other elements", from, to)
	}
	before := m.all
	m.all = slices.Delete(slices.Clone(m.all), first, last+1)
	m.equal(t, r)
	if r.IntN(2) == 0 {
		if _, tail := m.f.Bounds(); len(m.all) > 0 { // what was put meanwhile is rolled back first; the list may have another form since
			pushed := int64(r.IntN(2) * r.IntN(400))
			for i := range pushed {
				m.f.PutAt(tail+1+i, 1)
			}
			for i := range pushed {
				m.f.DeleteAt(tail + pushed - i)
			}
		}
		m.f.RestoreRange(removed)
		m.all = before
		m.equal(t, r)
	}
}

func (m *placedList) equal(t *testing.T, r *rand.Rand) {
	t.Helper()
	head, tail := m.f.Bounds()
	if m.f.Len() != len(m.all) {
		t.Fatalf("%d elements, want %d", m.f.Len(), len(m.all))
	}
	if len(m.all) == 0 {
		return
	}
	if head != m.all[0].at.Index || tail != m.all[len(m.all)-1].at.Index {
		t.Fatalf("from %d to %d, want %v to %v", head, tail, m.all[0].at, m.all[len(m.all)-1].at)
	}
	for range 4 {
		first := r.IntN(len(m.all))
		n := min(1+r.IntN(700), len(m.all)-first)
		at, locs := make([]keydir.ListPlace, n), make([]keydir.Loc, n)
		m.f.Elements(first, at, locs)
		for i := range at {
			if got, want := (placed{at[i], locs[i]}), m.all[first+i]; got != want {
				t.Fatalf("element %d of the %d from %d on is %v, want %v", i, n, first, got, want)
			}
		}
		p := m.all[first]
		if loc, ok := m.f.LocAtPlace(p.at); !ok || loc != p.loc {
			t.Fatalf("at %v: %v %v, want %v", p.at, loc, ok, p.loc)
		}
		missing := keydir.ListPlace{Index: p.at.Index, Sub: p.at.Sub + 1}
		if _, want := m.search(missing); missing.Sub > 0 {
			if _, ok := m.f.LocAtPlace(missing); ok != want {
				t.Fatalf("an element at %v: %v, want %v", missing, ok, want)
			}
		}
	}
	i := 0
	m.f.EachPlace(func(at keydir.ListPlace, loc keydir.Loc) bool {
		if i >= len(m.all) || m.all[i] != (placed{at, loc}) {
			t.Fatalf("element %d is at %v", i, at)
		}
		i++
		return true
	})
	sum := keydir.Loc(0)
	m.f.Each(func(_ []byte, loc keydir.Loc) bool { sum += loc; return true })
	for _, p := range m.all {
		sum -= p.loc
	}
	if i != len(m.all) || sum != 0 {
		t.Fatalf("each place calls for %d of %d elements; the sum of all is off by %d", i, len(m.all), sum)
	}
}

// step changes the list and its model at random.
func (m *placedList) step(t *testing.T, r *rand.Rand, deletes int) {
	t.Helper()
	loc := keydir.Loc(r.Uint64() | 1)
	n := len(m.all)
	near := func() int { return min(n-1, r.IntN(1+min(n-1, 3))+n/3) } // of few, so that much is inserted in one place
	switch {
	case n == 0:
		m.put(t, keydir.ListPlace{Index: r.Int64N(5000) - 2500}, loc)
	case r.IntN(60) == 0:
		m.deleteRange(t, r)
	case r.IntN(8) == 0:
		p := &m.all[r.IntN(n)]
		if m.f.MovePlace(p.at, p.loc+2, loc) || !m.f.MovePlace(p.at, p.loc, loc) {
			t.Fatalf("moved wrongly at %v", p.at)
		}
		p.loc = loc
	case r.IntN(100) < deletes:
		m.delete(t, m.all[[]int{0, n - 1, r.IntN(n), near()}[r.IntN(4)]].at)
	case r.IntN(4) == 0:
		m.put(t, keydir.ListPlace{Index: m.all[n-1].at.Index + 1}, loc)
	case r.IntN(4) == 0:
		m.put(t, m.all[r.IntN(n)].at, loc)
	default:
		if at, ok := m.between([]int{0, r.IntN(n), near(), near()}[r.IntN(4)], r); ok {
			m.put(t, at, loc)
		}
	}
}

func TestListPlacesAgainstSlice(t *testing.T) {
	for _, size := range []int{12, 120, 600, 3000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			r := chance.Rand(t)
			seed := keydir.Seed{1}
			d := keydir.NewDirectory(seed)
			m := &placedList{f: d.NewCollection(1, keydir.List, "list")}
			m.f.SetMeta(3)
			before := int64(r.IntN(size)) // elements with negative indexes
			for i := range int64(r.IntN(size)) {
				m.put(t, keydir.ListPlace{Index: i - before}, keydir.Loc(i+1))
			}
			for _, deletes := range []int{5, 40, 20, 80} {
				for range size {
					m.step(t, r, deletes)
					if r.IntN(50) == 0 {
						m.equal(t, r)
					}
				}
				check(t, d)
				m.equal(t, r)
				for _, piece := range []int{1, 200, 1 << 20} {
					loaded := reload(t, d, seed, 0, piece)
					f, _ := loaded.FindCollection(1, "list")
					(&placedList{f, m.all}).equal(t, r)
				}
			}
			for len(m.all) > 0 {
				m.delete(t, m.all[r.IntN(len(m.all))].at)
			}
			check(t, d)
			if m.f.Private() || m.f.Meta() != 3 {
				t.Error("the list is not small again")
			}
		})
	}
}

// TestListPlacesEnds: the last indexes and sub-indexes there are.
func TestListPlacesEnds(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{})
	m := &placedList{f: d.NewCollection(1, keydir.List, "list")}
	r := chance.Rand(t)
	for i, index := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 511, 512, math.MaxInt64 - 1, math.MaxInt64} {
		for j, sub := range []uint64{0, 1, math.MaxUint64} {
			m.put(t, keydir.ListPlace{Index: index, Sub: sub}, keydir.Loc(10*i+j+1))
		}
	}
	check(t, d)
	m.equal(t, r)
	if removed := m.f.DeleteRange(keydir.ListPlace{Index: math.MaxInt64, Sub: 1}, keydir.ListPlace{Index: math.MaxInt64, Sub: math.MaxUint64}); removed.Len() != 2 {
		t.Errorf("removed %d after the last index", removed.Len())
	}
	if removed := m.f.DeleteRange(keydir.ListPlace{Index: math.MinInt64}, keydir.ListPlace{Index: math.MaxInt64}); removed.Len() != 22 {
		t.Errorf("removed %d", removed.Len())
	}
	check(t, d)
}

// TestListCountsByReaders: readers that share the lock may be the first ones to ask for a position at the same time.
func TestListCountsByReaders(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{})
	f := d.NewCollection(1, keydir.List, "list")
	for i := range int64(5000) {
		f.PutAt(i, keydir.Loc(i+1))
	}
	f.DeleteAt(100)
	f.PutPlace(keydir.ListPlace{Index: 3000, Sub: 1}, 9)
	var readers sync.WaitGroup
	for first := range 4 {
		readers.Go(func() {
			var at [3]keydir.ListPlace
			var locs [3]keydir.Loc
			for position := first; position+3 < f.Len(); position += 7 {
				f.Elements(position, at[:], locs[:])
				want := keydir.ListPlace{Index: int64(position)}
				switch {
				case position == 3000:
					want = keydir.ListPlace{Index: 3000, Sub: 1}
				case position >= 100 && position < 3000:
					want.Index++
				}
				if at[0] != want {
					t.Errorf("element %d is at %v, want %v", position, at[0], want)
				}
			}
		})
	}
	readers.Wait()
	check(t, d)
}

// TestRangeOfAShortListComesBackInALongOne: a range that was removed from a list in one piece of memory is put back after that has become one of
// pages, with the elements on the right pages.
func TestRangeOfAShortListComesBackInALongOne(t *testing.T) {
	d := keydir.NewDirectory(keydir.Seed{1})
	f := d.NewCollection(1, keydir.List, "list")
	loc := func(i int64) keydir.Loc { return keydir.Loc(1000 + i) }
	for i := int64(-100); i < 100; i++ {
		f.PutAt(i, loc(i))
	}
	removed := f.DeleteRange(keydir.ListPlace{Index: -1}, keydir.ListPlace{})
	for i := int64(100); i < 300; i++ {
		f.PutAt(i, loc(i))
	}
	for i := int64(299); i >= 100; i-- {
		f.DeleteAt(i)
	}
	f.RestoreRange(removed)
	for i := int64(-100); i < 100; i++ {
		if at, ok := f.LocAt(i); !ok || at != loc(i) {
			t.Errorf("element %d is at %d, %v, want %d", i, at, ok, loc(i))
		}
	}
	check(t, d)
}
