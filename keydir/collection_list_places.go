package keydir

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/stavedb/stave/internal/ordered"
)

// A list is regular if its elements are at consecutive indexes, as pushes and pops leave them: the n-th one is at the
// n-th index. An element that is removed in the middle leaves a hole, an index without an element. One that is put
// between two neighbours with no index between them is at the index of the first, with a sub-index above zero. In a
// list that is not regular a position is found by counts: of a small one by walking it, of a big one by the counts of its
// pages, which are made when they are first asked for. A list with inserted elements is a big one.

// ListPlace is where an element is in a list. Places are in order of index, then sub-index.
type ListPlace struct {
	Index int64
	Sub   uint64 // zero, unless the element was inserted after that index and before the next one
}

// Compare returns -1, 0 or 1, as p is before q, the same, or after it.
func (p ListPlace) Compare(q ListPlace) int {
	return cmp.Or(cmp.Compare(p.Index, q.Index), cmp.Compare(p.Sub, q.Sub))
}

// Less reports whether p is before q.
func (p ListPlace) Less(q ListPlace) bool { return p.Compare(q) < 0 }

// listCounts is how many elements there are at the indexes of each page of a list, inserted ones included.
type listCounts struct {
	nos  []int64 // of pages, ascending; some may have no elements any more
	n    []int
	sums fenwick // of n
}

// add adds to the count of a page.
func (k *listCounts) add(no int64, delta int) {
	i, ok := slices.BinarySearch(k.nos, no)
	if ok {
		k.n[i] += delta
		k.sums.add(i, delta)
		return
	}
	k.nos, k.n = slices.Insert(k.nos, i, no), slices.Insert(k.n, i, delta)
	kept := 0
	for i, n := range k.n {
		if n > 0 {
			k.nos[kept], k.n[kept] = k.nos[i], n
			kept++
		}
	}
	k.nos, k.n = k.nos[:kept], k.n[:kept]
	k.sums = append(k.sums[:0], k.n...)
	k.sums.build()
}

// count adds to the count of the elements at the indexes of a page.
func (x *list) count(index int64, delta int) {
	x.n += delta
	if k := x.counts.Load(); k != nil {
		k.add(index>>listShift, delta)
	}
}

// regular reports whether the n-th element is at the n-th index.
func (x *list) regular() bool { return x.inserted == nil && uint64(x.n) == x.span() }

// counted returns the counts of the pages. Readers that share the lock may make them at the same time: they make the
// same ones, and one of them stays.
func (x *list) counted() *listCounts {
	if k := x.counts.Load(); k != nil {
		return k
	}
	byNo := map[int64]int{}
	x.pages.Ascend(func(p listPage) bool {
		byNo[p.no] = locs(x.arena.block(p.page)).n()
		return true
	})
	x.eachInserted(ListPlace{Index: math.MinInt64}, func(at ListPlace, _ Loc) bool {
		byNo[at.Index>>listShift]++
		return true
	})
	k := &listCounts{nos: make([]int64, 0, len(byNo)), n: make([]int, 0, len(byNo))}
	for no := range byNo {
		k.nos = append(k.nos, no)
	}
	slices.Sort(k.nos)
	for _, no := range k.nos {
		k.n = append(k.n, byNo[no])
	}
	k.sums = append(k.sums, k.n...)
	k.sums.build()
	x.counts.CompareAndSwap(nil, k)
	return x.counts.Load()
}

// shrink moves the bounds to the first and the last element, after some were removed.
func (x *list) shrink() {
	if x.n == 0 {
		x.head, x.tail = 0, -1
		return
	}
	head, ok := x.firstFrom(x.head)
	if at, some := x.firstInserted(); some && (!ok || at.Index < head) {
		head = at.Index
	}
	tail, ok := x.lastTo(x.tail)
	if at, some := x.lastInserted(); some && (!ok || at.Index > tail) {
		tail = at.Index
	}
	x.head, x.tail = head, tail
}

// Inserted elements are entries of orderedPages: the key is the index, and the name the sub-index, big-endian, with the
// location after it. So they are counted, and a search for a name without a location finds the entry.

const subBytes = 8

func indexKey(index int64) uint64 { return ordered.Int(index) }

func subName(sub uint64) string {
	var b [subBytes]byte
	binary.BigEndian.PutUint64(b[:], sub)
	return string(b[:])
}

// placeOf reads an entry.
func placeOf(entries *packed, e entry) (ListPlace, Loc) {
	name := entries.nameOf(e)
	return ListPlace{ordered.ToInt(entries.key(e)), binary.BigEndian.Uint64(name)}, Loc(binary.LittleEndian.Uint64(name[subBytes:]))
}

// seekInserted returns the position of the first inserted element that is not before a place. Of the very place it also
// returns the bytes of the location, nil if no element is there.
func (x *list) seekInserted(p ListPlace) (at position, loc []byte) {
	if x.inserted == nil {
		return at, nil
	}
	at, _ = x.inserted.seek(indexKey(p.Index), subName(p.Sub))
	cur := x.inserted.cursor(at)
	e, ok := cur.next()
	if !ok {
		return at, nil
	}
	if have, _ := placeOf(&cur.entries, e); have != p {
		return at, nil
	}
	if cur.page != at.page || cur.group != at.group { // the first one of the next page
		at = position{group: cur.group, page: cur.page}
	}
	return at, cur.entries.nameOf(e)[subBytes:]
}

// eachInserted calls fn for the inserted elements from a place on, until fn returns false.
func (x *list) eachInserted(from ListPlace, fn func(at ListPlace, loc Loc) bool) {
	if x.inserted == nil {
		return
	}
	at, _ := x.seekInserted(from)
	cur := x.inserted.cursor(at)
	for e, ok := cur.next(); ok; e, ok = cur.next() {
		if !fn(placeOf(&cur.entries, e)) {
			return
		}
	}
}

func (x *list) firstInserted() (first ListPlace, ok bool) {
	x.eachInserted(ListPlace{Index: math.MinInt64}, func(at ListPlace, _ Loc) bool {
		first, ok = at, true
		return false
	})
	return first, ok
}

func (x *list) lastInserted() (last ListPlace, ok bool) {
	if x.inserted == nil {
		return last, false
	}
	cur := x.inserted.cursor(x.inserted.at(x.inserted.n - 1))
	e, ok := cur.next()
	last, _ = placeOf(&cur.entries, e)
	return last, ok
}

// putInserted is put at a place between two indexes.
func (x *list) putInserted(hash *hasher, p ListPlace, loc Loc) (old Loc) {
	if x.inserted == nil {
		x.inserted = &orderedPages{arena: x.arena, hash: hash, layout: ranked}
	}
	at, bytes := x.seekInserted(p)
	if bytes != nil {
		old = Loc(binary.LittleEndian.Uint64(bytes))
		binary.LittleEndian.PutUint64(bytes, uint64(loc))
		return old
	}
	name := binary.LittleEndian.AppendUint64([]byte(subName(p.Sub)), uint64(loc))
	x.inserted.insert(at, indexKey(p.Index), asString(name), 0, 0)
	if x.n == 0 {
		x.head, x.tail = p.Index, p.Index
	}
	x.head, x.tail = min(x.head, p.Index), max(x.tail, p.Index)
	x.count(p.Index, 1)
	return 0
}

// deleteInserted removes an inserted element and returns its location. The caller moves the bounds.
func (x *list) deleteInserted(p ListPlace) (old Loc) {
	at, bytes := x.seekInserted(p)
	if bytes == nil {
		return 0
	}
	old = Loc(binary.LittleEndian.Uint64(bytes))
	x.inserted.remove(at)
	x.count(p.Index, -1)
	if x.inserted.n == 0 {
		x.inserted = nil
	}
	return old
}

// LocAtPlace returns the location of a list's element.
func (c Collection) LocAtPlace(p ListPlace) (Loc, bool) {
	if p.Sub == 0 {
		return c.LocAt(p.Index)
	}
	if _, x := c.listOf("LocAtPlace"); x != nil {
		if _, bytes := x.seekInserted(p); bytes != nil {
			return Loc(binary.LittleEndian.Uint64(bytes)), true
		}
	}
	return 0, false
}

// PutPlace is PutAt of any place.
func (c Collection) PutPlace(p ListPlace, loc Loc) (old Loc, existed bool) {
	if p.Sub == 0 {
		return c.PutAt(p.Index, loc)
	}
	if loc == 0 {
		panic("BUG: keydir: PutPlace of no location")
	}
	_, x := c.listOf("PutPlace")
	if x == nil {
		x = c.set.promote(c.id).list
	}
	old = x.putInserted(c.set.hash, p, loc)
	return old, old != 0
}

// DeletePlace is DeleteAt of any place.
func (c Collection) DeletePlace(p ListPlace) (old Loc, existed bool) {
	if p.Sub == 0 {
		return c.DeleteAt(p.Index)
	}
	_, x := c.listOf("DeletePlace")
	if x == nil {
		return 0, false
	}
	if old = x.deleteInserted(p); old == 0 {
		return 0, false
	}
	x.shrink()
	c.set.demote(c.id, c.set.big(c.id))
	return old, true
}

// MovePlace is MoveAt of any place.
func (c Collection) MovePlace(p ListPlace, old, loc Loc) bool {
	if p.Sub == 0 {
		return c.MoveAt(p.Index, old, loc)
	}
	_, x := c.listOf("MovePlace")
	if x == nil {
		return false
	}
	_, bytes := x.seekInserted(p)
	if bytes == nil || Loc(binary.LittleEndian.Uint64(bytes)) != old {
		return false
	}
	binary.LittleEndian.PutUint64(bytes, uint64(loc))
	return true
}

// Regular reports whether the elements of a list are at consecutive indexes.
func (c Collection) Regular() bool {
	s, x := c.listOf("Regular")
	if x != nil {
		return x.regular()
	}
	return s.n() == s.span()
}

// Elements sets at and locs to the places and locations of consecutive elements of a list, from a position on; 0 is the
// first one. The two have the same length, and there are as many elements. O(log n) and O(1) an element.
func (c Collection) Elements(position int, at []ListPlace, locs []Loc) {
	s, x := c.listOf("Elements")
	n, head := 0, int64(0)
	if x != nil {
		n, head = x.n, x.head
	} else {
		n, head = s.n(), s.head()
	}
	if position < 0 || position+len(at) > n || len(at) != len(locs) {
		panic("BUG: keydir: no such elements of a list")
	}
	switch {
	case x != nil && !x.regular():
		x.elements(position, at, locs)
		return
	case x != nil && len(at) == 1:
		at[0] = ListPlace{Index: head + int64(position)}
		locs[0] = x.at(at[0].Index)
		return
	case x != nil || n == s.span():
		c.LocsAt(head+int64(position), locs)
		for i := range at {
			at[i] = ListPlace{Index: head + int64(position+i)}
		}
		return
	}
	for i, found := 0, -position; found < len(at); i++ {
		if loc := s.locAt(i); loc != 0 {
			if found >= 0 {
				at[found], locs[found] = ListPlace{Index: head + int64(i)}, loc
			}
			found++
		}
	}
}

// elements is Elements of a list that is not regular.
func (x *list) elements(position int, at []ListPlace, locs []Loc) {
	k := x.counted()
	i, skip := k.sums.find(position)
	for found := 0; found < len(at); i++ {
		found += x.elementsOf(k.nos[i], k.n[i], skip, at[found:], locs[found:])
		skip = 0
	}
}

// elementsOf sets elements of a page that has n, after those to be skipped, and returns how many it has set.
func (x *list) elementsOf(no int64, n, skip int, at []ListPlace, to []Loc) (found int) {
	want := min(n-skip, len(at))
	if want == 0 { // the page is gone
		return 0
	}
	base := no << listShift
	var l locs
	if p, ok := x.pageOf(base); ok {
		l = locs(x.arena.block(p.page))
	}
	slot := 0
	var cur cursor
	var next placedLoc
	more := false // there is a next inserted element
	if l == nil || n > l.n() {
		var before int
		slot, before = x.slotBefore(l, base, skip)
		skip -= before
		first, _ := x.seekInserted(ListPlace{Index: base + int64(slot)})
		switch {
		case !l.has(slot):
			slot++
		case skip > 0:
			skip--
			slot++
		}
		cur = x.inserted.cursor(x.inserted.at(x.inserted.rank(first) + skip))
		skip = 0
		if e, ok := cur.next(); ok {
			next.at, next.loc = placeOf(&cur.entries, e)
			more = true
		}
	}
	for found < want {
		index := base + int64(slot)
		if more && (slot == listSlots || next.at.Index < index) {
			at[found], to[found] = next.at, next.loc
			found++
			e, ok := cur.next()
			if more = ok; ok {
				next.at, next.loc = placeOf(&cur.entries, e)
			}
			continue
		}
		if l.has(slot) {
			if skip == 0 {
				at[found], to[found] = ListPlace{Index: index}, l.at(slot)
				found++
			} else {
				skip--
			}
		}
		slot++
	}
	return found
}

// slotBefore returns the last slot of a page before which there are at most that many of its elements, and how many.
func (x *list) slotBefore(l locs, base int64, most int) (slot, before int) {
	origin, _ := x.seekInserted(ListPlace{Index: base})
	first := x.inserted.rank(origin)
	count := func(slot int) int {
		at, _ := x.seekInserted(ListPlace{Index: base + int64(slot)})
		return l.countTo(slot) + x.inserted.rank(at) - first
	}
	slot = sort.Search(listSlots-1, func(i int) bool { return count(i+1) > most })
	return slot, count(slot)
}

// has reports whether a page, which may be nil, has an element at a slot.
func (l locs) has(slot int) bool { return l != nil && l.at(slot) != 0 }

// countTo returns the number of elements before a slot of a page, which may be nil.
func (l locs) countTo(slot int) int {
	if l == nil {
		return 0
	}
	return countLocs(l.slots()[:8*min(max(slot-l.first(), 0), l.span())])
}

// EachPlace calls fn for the elements of a list in order, with their places, until fn returns false.
func (c Collection) EachPlace(fn func(at ListPlace, loc Loc) bool) {
	var at [64]ListPlace
	var locs [len(at)]Loc
	for position, n := 0, c.Len(); position < n; {
		k := min(n-position, len(at))
		c.Elements(position, at[:k], locs[:k])
		for i := range k {
			if !fn(at[i], locs[i]) {
				return
			}
		}
		position += k
	}
}
