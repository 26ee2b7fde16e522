package keydir

import "encoding/binary"

// Move sets the location of an element of a hash, set or sorted set if it is old, and reports whether it was: the one
// change that a commit and a merge make to each record, in one search.
func (c Collection) Move(elem string, old, loc Loc) bool {
	var pos elemPos
	if c.seek(elem, &pos); !pos.found || pos.entries.loc(pos.entry) != old {
		return false
	}
	pos.entries.setLoc(pos.entry, loc)
	return true
}

// MoveAt is Move of an element of a list or of a string's chunk; the locations must not be zero.
func (c Collection) MoveAt(index int64, old, loc Loc) bool {
	s, x := c.listOf("MoveAt")
	if x != nil {
		return x.move(index, old, loc)
	}
	i, ok := offset(s.head(), index, s.span())
	if !ok || s.locAt(i) != old {
		return false
	}
	s.setLocAt(i, loc)
	return true
}

func (x *list) move(index int64, old, loc Loc) bool {
	p, ok := x.pageOf(index)
	if !ok {
		return false
	}
	l, slot := locs(x.arena.block(p.page)), int(index&(listSlots-1))
	if l.at(slot) != old {
		return false
	}
	l.set(slot, loc)
	return true
}

// MoveEntry is Move of an entry of a stream. O(1) for entries that are moved in order of id.
func (c Collection) MoveEntry(id StreamID, old, loc Loc) bool {
	run, x := c.streamOf("MoveEntry")
	if x != nil {
		return x.move(id, old, loc)
	}
	off := run.find(id)
	return off > 0 && run.moveLoc(off, old, loc)
}

func (r streamRun) moveLoc(off int, old, loc Loc) bool {
	if Loc(binary.LittleEndian.Uint64(r[off:])) != old {
		return false
	}
	r.swapLoc(off, loc)
	return true
}

// streamPlace is where an entry of a big stream is. It holds until the page is removed: appending to a page leaves its
// entries where they are.
type streamPlace struct {
	valid    bool
	page     uint32
	id       StreamID
	off, end int // as a runCursor has them
}

func (x *stream) move(id StreamID, old, loc Loc) bool {
	at := x.moved
	cur := runCursor{}
	if at.valid && at.id.Less(id) {
		cur = runCursor{run: x.block(streamPage{page: at.page}).run(), id: at.id, off: at.off, end: at.end}
	}
	if len(cur.run) == 0 || cur.run.last().Less(id) {
		p, ok := x.pageOf(id)
		if !ok {
			return false
		}
		cur = runCursor{run: x.block(p).run()}
		at.page = p.page
	}
	if id == cur.run.last() {
		cur.id, cur.off, cur.end = id, len(cur.run)-8, len(cur.run)
	} else if !cur.seek(id) || cur.id != id {
		return false
	}
	x.moved = streamPlace{true, at.page, id, cur.off, cur.end}
	return cur.run.moveLoc(cur.off, old, loc)
}
