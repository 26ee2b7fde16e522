package keydir

import (
	"encoding/binary"
	"math"
)

// Removed is what DeleteRange has removed. It owns its memory and needs no lock.
type Removed struct {
	runs     []listRun
	inserted []placedLoc // between indexes
	n        int
}

// listRun is locations at consecutive indexes, zero where there was no element. The first and the last are never zero,
// and those of a big list are of one page.
type listRun struct {
	index int64
	slots []byte
}

// placedLoc is the location of an element that was inserted between two indexes.
type placedLoc struct {
	at  ListPlace
	loc Loc
}

// Len returns the number of elements.
func (r Removed) Len() int { return r.n }

// Each calls fn for the location of every element, until fn returns false.
func (r Removed) Each(fn func(Loc) bool) {
	for _, run := range r.runs {
		for b := run.slots; len(b) > 0; b = b[8:] {
			if loc := Loc(binary.LittleEndian.Uint64(b)); loc != 0 && !fn(loc) {
				return
			}
		}
	}
	for _, p := range r.inserted {
		if !fn(p.loc) {
			return
		}
	}
}

// take adds the n locations among some slots, from an index on. The slots are copied.
func (r *Removed) take(index int64, slots []byte, n int) {
	index, slots = trimZeros(index, slots)
	r.runs = append(r.runs, listRun{index, append([]byte(nil), slots...)})
	r.n += n
}

// DeleteRange removes the elements of a list from one place to another, both included. The others keep their place.
// O(1) for every 512 of them, and O(log n) for each that was inserted.
func (c Collection) DeleteRange(from, to ListPlace) (r Removed) {
	s, x := c.listOf("DeleteRange")
	if x != nil {
		if r = x.deleteRange(from, to); r.n > 0 {
			c.set.demote(c.id, c.set.big(c.id))
		}
		return r
	}
	first, last, ok := indexesBetween(from, to)
	head, tail := c.Bounds()
	if first, last = max(first, head), min(last, tail); !ok || first > last {
		return r
	}
	slots := s.body()[8+8*(first-head) : 8+8*(last-head+1)]
	n := countLocs(slots)
	if n == 0 {
		return r
	}
	r.take(first, slots, n)
	clear(slots)
	s.setBody(s.n()-n, s.used())
	c.trimSmall(s)
	return r
}

// indexesBetween returns the first and the last index from one place to another, if there are any.
func indexesBetween(from, to ListPlace) (first, last int64, ok bool) {
	first = from.Index
	if from.Sub > 0 {
		if first == math.MaxInt64 {
			return 0, 0, false
		}
		first++
	}
	return first, to.Index, first <= to.Index
}

func (x *list) deleteRange(from, to ListPlace) (r Removed) {
	first, last, ok := indexesBetween(from, to)
	if first, last = max(first, x.head), min(last, x.tail); ok && first <= last {
		var pages []listPage
		x.pages.AscendRange(listPage{no: first >> listShift}, listPage{no: last>>listShift + 1}, func(p listPage) bool {
			pages = append(pages, p)
			return true
		})
		for _, p := range pages {
			x.deleteInPage(p, first, last, &r)
		}
	}
	x.eachInserted(from, func(at ListPlace, loc Loc) bool {
		if to.Less(at) {
			return false
		}
		r.inserted = append(r.inserted, placedLoc{at, loc})
		return true
	})
	for _, p := range r.inserted {
		x.deleteInserted(p.at)
	}
	r.n += len(r.inserted)
	x.shrink()
	return r
}

// deleteInPage removes the elements of a range that are in a page.
func (x *list) deleteInPage(p listPage, from, to int64, r *Removed) {
	l, base := locs(x.arena.block(p.page)), p.no<<listShift
	start, end := l.first(), l.first()+l.span()
	if from > base {
		start = max(start, int(from-base))
	}
	if to < base+listSlots-1 {
		end = min(end, int(to-base)+1)
	}
	if start >= end {
		return
	}
	slots := l.slots()[8*(start-l.first()) : 8*(end-l.first())]
	n := l.n()
	if len(slots) < 8*l.span() {
		n = countLocs(slots)
	}
	if n == 0 {
		return
	}
	r.take(base+int64(start), slots, n)
	x.count(base, -n)
	if n == l.n() {
		x.dropPage(p)
		return
	}
	clear(slots)
	l.setHead(l.first(), l.span(), l.n()-n)
	x.trim(p.page)
}

// RestoreRange puts back what DeleteRange has removed, once all changes since have been rolled back.
func (c Collection) RestoreRange(r Removed) {
	for _, run := range r.runs {
		if _, x := c.listOf("RestoreRange"); x != nil {
			x.putLocs(run.index, run.slots)
			continue
		}
		for i := 0; 8*i < len(run.slots); i++ {
			if loc := Loc(binary.LittleEndian.Uint64(run.slots[8*i:])); loc != 0 {
				c.PutAt(run.index+int64(i), loc)
			}
		}
	}
	for _, p := range r.inserted {
		c.PutPlace(p.at, p.loc)
	}
}
