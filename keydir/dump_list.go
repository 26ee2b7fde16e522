package keydir

import (
	"encoding/binary"
	"slices"
)

// Lists in a dump: runs of locations at consecutive indexes, and then index, sub-index and location of each element that was
// inserted.

const insertedBytes = 3 * 8

// insertedAt reads an inserted element.
func insertedAt(b []byte) (ListPlace, Loc) {
	return ListPlace{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}, Loc(binary.LittleEndian.Uint64(b[16:]))
}

// measureInserted is measure of inserted elements, in ascending order.
func (l *Loader) measureInserted(n int, b []byte) (size, end int, ok bool) {
	if n == 0 || n > len(b)/insertedBytes {
		return 0, 0, false
	}
	var last ListPlace
	for i := range n {
		at, loc := insertedAt(b[i*insertedBytes:])
		if at.Sub == 0 || loc == 0 || i > 0 && !last.Less(at) || !l.OnLoc(loc) {
			return 0, 0, false
		}
		last = at
	}
	return n * insertedBytes, n * insertedBytes, true
}

// loadInserted puts inserted elements. It reports false unless all parts have such, in ascending order.
func (x *list) loadInserted(hash *hasher, parts []part) bool {
	var last ListPlace
	for i, p := range parts {
		if !p.inserted {
			return false
		}
		for b := p.body; len(b) > 0; b = b[insertedBytes:] {
			at, loc := insertedAt(b)
			if (i > 0 || x.inserted != nil) && !last.Less(at) {
				return false
			}
			x.putInserted(hash, at, loc)
			last = at
		}
	}
	return true
}

// loadList makes a list of its parts. It reports false unless their indexes ascend, and the places of the inserted
// elements after them.
func (dc *dumpedCollection) loadList(cs *collectionSet, id uint32) bool {
	pages := dc.parts
	if i := slices.IndexFunc(pages, func(p part) bool { return p.inserted }); i >= 0 {
		pages = pages[:i]
	}
	inserted := dc.parts[len(pages):]
	var tail int64
	for i, p := range pages {
		first, _ := p.locs()
		last := first + int64(p.n) - 1
		if last < first || i > 0 && first <= tail {
			return false
		}
		tail = last
	}
	if len(dc.parts) <= 1 && len(inserted) == 0 && smallHeaderBytes+len(dc.key)+8+dc.size <= sizeLimit(dc.typ) {
		dc.loadSmallList(cs, id)
		return true
	}
	g := cs.newBig(dc.typ, string(dc.key))
	g.meta = dc.meta
	cs.setBig(id, g)
	for _, p := range pages {
		g.list.putLocs(p.locs())
	}
	return g.list.loadInserted(cs.hash, inserted)
}

// loadSmallList writes the block of a small list, which has at most one part.
func (dc *dumpedCollection) loadSmallList(cs *collectionSet, id uint32) {
	var head int64
	var run []byte
	if len(dc.parts) > 0 {
		head, run = trimZeros(dc.parts[0].locs())
	}
	if len(run) == 0 {
		cs.writeHead(id, dc.typ, asString(dc.key), 0, dc.meta)
		return
	}
	s := cs.writeHead(id, dc.typ, asString(dc.key), 8+len(run), dc.meta)
	s.setBody(countLocs(run), 8+len(run))
	s.setListHead(head)
	copy(s.body()[8:], run)
}

// locs returns the first index and the locations of a part of a list. A location of zero is an
// index without an element.
func (p part) locs() (first int64, locs []byte) {
	return int64(binary.LittleEndian.Uint64(p.body)), p.body[8:]
}

// trimZeros removes the zeros at both ends.
func trimZeros(index int64, b []byte) (int64, []byte) {
	for len(b) > 0 && isZero(b[:8]) {
		index++
		b = b[8:]
	}
	for len(b) > 0 && isZero(b[len(b)-8:]) {
		b = b[:len(b)-8]
	}
	return index, b
}

// countLocs counts the locations other than zero.
func countLocs(b []byte) (n int) {
	for ; len(b) > 0; b = b[8:] {
		if !isZero(b[:8]) {
			n++
		}
	}
	return n
}

// putLocs appends locations at indexes after the last one. Zeros are indexes without an element.
func (x *list) putLocs(index int64, b []byte) {
	for len(b) > 0 {
		k := min(len(b)/8, listSlots-int(index&(listSlots-1)))
		x.putPage(index, b[:8*k])
		index += int64(k) // wraps around only after the last
		b = b[8*k:]
	}
}

// putPage puts locations where there are none, at indexes of one page.
func (x *list) putPage(index int64, b []byte) {
	if index, b = trimZeros(index, b); len(b) == 0 {
		return
	}
	first, n := int(index&(listSlots-1)), len(b)/8
	page := x.pageFor(index)
	x.widen(page, first)
	l := x.widen(page, first+n-1)
	copy(l[listHeaderBytes+8*(first-l.first()):], b)
	elements := countLocs(b)
	l.setHead(l.first(), l.span(), l.n()+elements)
	last := index + int64(n-1)
	if x.n == 0 {
		x.head, x.tail = index, last
	}
	x.head, x.tail = min(x.head, index), max(x.tail, last)
	x.count(index, elements)
}
