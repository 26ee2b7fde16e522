package keydir

import "encoding/binary"

// A stripe of a directory can be dumped as bytes and loaded again. The dump says what there is, not how it lies
// in memory: loading lays it out anew, densely, and finds every inconsistency by doing so. Integers are little-endian,
// lengths of names uvarints.
//
//	dump:     | stripe 1 | item, item ... |, in ascending order of hash; no bytes at all if there is no item
//	item:     | slot | place |                                                                  string, deadline
//	          | slot | place of the meta records | elements 4 | key length 2 | key | element ...   collections
//	slot:     1 to 8 bytes, the fewest possible: bits 0-2 how many, less one; 3-5 the type, 0 for chunks; 6 same;
//	          7 on the difference to the hash before, both shifted right by three, or to the stripe's lowest
//	place:    | segment uvarint | offset 4 | class of the size 1 |, without the class if the slot says that it is the same as before
//	element:  | length | name | location 8 |             hash, set; in ascending order of hash, then name
//	          | length | name | location 8 | score 8 |   sorted set; in that order too
//	          | first index 8 | location 8, location 8 ... |   list, chunks: one for each of so many indexes, zero where there is no element
//
// Several items of one hash, type and key are one collection: each goes on where the one before ended. Where there is no
// meta record, its place is all zeros.

// Dump dumps one stripe of a directory, in pieces, so that nobody holds its lock for long.
//
// What changes between the pieces may be in the dump or not, each change on its own. Whoever knows all changes since the
// first piece, and makes them again on what was loaded, in order, comes to the same end: a change sets one
// slot, element or location whatever it was before, or takes it away, or drops a collection whole.
type Dump struct {
	dir    *Directory
	stripe int
	from   uint64 // hash of the next slot
	ended  bool   // no slots are left
	big    []bigDump
	items  itemContext
}

// bigDump is a collection whose elements are still to come, behind the one named here.
type bigDump struct {
	h     uint64
	typ   Type
	key   string
	begun bool
	elem  string
	index int64 // of a list: the next
}

// Dump returns a dump of a stripe that has not begun.
func (d *Directory) Dump(stripe int) Dump {
	return Dump{dir: d, stripe: stripe, from: uint64(stripe) << (64 - stripeBits), items: itemContext{stripe: stripe}}
}

// Done reports whether nothing is left to append.
func (c *Dump) Done() bool { return c.ended && len(c.big) == 0 }

// Append appends the next piece to b, about so many bytes. The caller holds the lock of the stripe, shared.
func (c *Dump) Append(b []byte, most int) []byte {
	for limit := len(b) + most; len(b) < limit && !c.Done(); {
		if len(c.big) > 0 {
			b = c.appendBig(b, limit)
		} else {
			b = c.appendSlots(b, limit)
		}
	}
	return b
}

// appendSlots appends slots, and small collections with them, up to the next big collection. All slots of one
// hash go into one piece, for their order may change between two.
func (c *Dump) appendSlots(b []byte, limit int) []byte {
	r := c.dir.regions[c.stripe].Load()
	if r == nil {
		c.ended = true
		return b
	}
	last, first := uint64(0), true
	c.ended = r.scan(c.from, func(word, loc uint64) bool {
		h := word &^ typeMask
		if !first && h != last && (len(b) >= limit || len(c.big) > 0) {
			c.from = h
			return false
		}
		last, first = h, false
		s := unpack(word, loc)
		if s.Type.hasCollection() {
			b = c.appendCollection(b, h, Collection{fs: &r.collections, id: uint32(loc)})
			return true
		}
		b = c.items.append(b, h, s.Type, s.Loc)
		return true
	})
	return b
}

// appendItem appends the item of a collection without elements, to be counted later by count.
func (c *Dump) appendItem(b []byte, h uint64, t Type, meta Loc, key string) (_ []byte, count int) {
	b = c.items.append(b, h, t, meta)
	count = len(b)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(key)))
	return append(b, key...), count
}

// appendCollection appends a small collection, or the item of a big one whose elements come later.
func (c *Dump) appendCollection(b []byte, h uint64, f Collection) []byte {
	if g := f.fs.big(f.id); g != nil {
		b, _ = c.appendItem(b, h, g.typ, g.meta, g.key)
		c.big = append(c.big, bigDump{h: h, typ: g.typ, key: g.key})
		return b
	}
	s := f.fs.small(f.id)
	b, count := c.appendItem(b, h, s.typ(), s.meta(), view(s.key()))
	n := s.n()
	switch {
	case !s.typ().Indexed():
		b, _, _ = appendElements(b, cursor{run: s.run(f.fs.hash)}, len(b)+1<<30)
	case n > 0:
		n = s.span()
		b = append(b, s.body()...)
	}
	binary.LittleEndian.PutUint32(b[count:], uint32(n))
	return b
}

// appendElements appends elements until b is as long as the limit, and returns the name of the last one.
func appendElements(b []byte, c cursor, limit int) (_ []byte, n int, last []byte) {
	for len(b) < limit {
		e, ok := c.next()
		if !ok {
			return b, n, nil
		}
		last = c.run.nameOf(e)
		b = binary.AppendUvarint(b, uint64(len(last)))
		b = append(b, c.run.data[e.name:e.end]...)
		n++
	}
	return b, n, last
}

// appendBig appends elements of the first of the big collections that wait. One that has gone meanwhile, or become another
// type, is left as it is: a change that is to be made again drops it.
func (c *Dump) appendBig(b []byte, limit int) []byte {
	p := &c.big[0]
	f, ok := c.dir.findCollection(p.h, p.key, setOf(p.typ))
	if !ok {
		c.big = c.big[1:]
		return b
	}
	var count, n int
	var more bool
	b, count = c.appendItem(b, p.h, p.typ, f.Meta(), p.key)
	if p.typ.Indexed() {
		b, n, more = p.appendIndexes(b, f)
	} else {
		b, n, more = p.appendMembers(b, f, limit)
	}
	binary.LittleEndian.PutUint32(b[count:], uint32(n))
	if !more {
		c.big = c.big[1:]
	}
	return b
}

// appendMembers appends elements in order of hash.
func (p *bigDump) appendMembers(b []byte, f Collection, limit int) (_ []byte, n int, more bool) {
	var c cursor
	off, found := 0, false
	hash := uint64(0)
	if p.begun {
		hash = f.HashOf(p.elem)
	}
	if g := f.fs.big(f.id); g != nil {
		var at spot
		at, found = g.members.seek(hash, p.elem)
		c = g.members.cursor(at)
	} else {
		c.run = f.fs.small(f.id).run(f.fs.hash)
		off, _, found = c.run.seek(hash, p.elem)
		c.off = off
	}
	if p.begun && found {
		c.next()
	}
	b, n, last := appendElements(b, c, max(limit, len(b)+1))
	p.begun, p.elem = true, string(last)
	return b, n, last != nil
}

// appendIndexes appends one page of a list that has something from the next index on.
func (p *bigDump) appendIndexes(b []byte, f Collection) (_ []byte, n int, more bool) {
	from, tail := f.Bounds()
	if p.begun {
		from = max(from, p.index)
	}
	p.begun = true
	if tail < from || f.Len() == 0 {
		return b, 0, false
	}
	g := f.fs.big(f.id)
	if g == nil { // it has shrunk
		s := f.fs.small(f.id)
		skip := int(from - s.head())
		b = binary.LittleEndian.AppendUint64(b, uint64(from))
		return append(b, s.body()[8+8*skip:]...), s.span() - skip, false
	}
	from = g.list.firstFrom(from)
	no, slot := from>>listShift, int(from&(listSlots-1))
	page, _ := g.list.pages.Get(listPage{no: no})
	l := locs(g.arena.block(page.page))
	b = binary.LittleEndian.AppendUint64(b, uint64(from))
	b = append(b, l.slots()[8*(slot-l.first()):]...)
	p.index = (no + 1) << listShift
	return b, l.first() + l.span() - slot, no < tail>>listShift
}
