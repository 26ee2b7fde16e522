package keydir

import "encoding/binary"

// The inserted elements of a list in a dump: index, sub-index and location of each.

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
