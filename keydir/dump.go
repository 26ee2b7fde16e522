package keydir

import (
	"cmp"
	"encoding/binary"
	"math"
)

// A stripe of a directory can be dumped to bytes and loaded again. The dump describes the
// content, not its layout in memory: loading lays it out afresh, densely, and so detects every
// inconsistency. Integers are little-endian, lengths of names uvarints.
//
//	dump:     | stripe 1 | item, item ... |, in ascending order of hash; no bytes if there is no item
//	item:     | slot | location |                                                         string, deadline
//	          | slot | location of the meta record | elements 4 | key length 2 | key | element ...   collections
//	slot:     1 to 8 bytes, the fewest possible: bits 0-2 how many, less one; 3-5 the type, 0 for chunks, streams and their groups; 6 same;
//	          from 7 the difference to the previous hash, or to the stripe's lowest, both shifted right by three
//	location: | segment uvarint | offset 4 | class of the size 1 |, without the class if the slot's bit "same" is set
//	element:  | length | name | location 8 |             hash, set; in ascending order of hash, then name, or the order below
//	          | length | name | location 8 | score 8 |   sorted set; in ascending order of hash, then name
//	          | first index 8 | location 8, location 8 ... |   list, chunks: one for each of so many indexes, zero where there is no element
//	          | index 8 | sub-index 8 | location 8 |   list: an element that was inserted between two indexes
//	          | bytes 4 | first id 16 | location 8 | step | location 8 | step ... |   stream; collection_stream.go has the steps
//
// The elements of a hash or set that has at most orderedLimit of them, of orderedBytes, and one item with elements, may
// be in any order: it is the one that the loaded collection has.
//
// The number of elements of a stream has the bit streamItem set, that of groups of one groupsItem; their elements are
// as those of a sorted set. That of the inserted elements of a list, in items after those of the others, has insertedItem.
//
// Several items of one hash, type and key are one collection: each continues the previous one.
// The location of a missing meta record is all zeros.

// Dump dumps one stripe of a directory in pieces, so that its lock is never held for long.
//
// Each change between two pieces may be in the dump or not. Replaying, in order, all changes
// since the first piece gives the current state, whether or not the dump already contains
// them: a change sets one slot, element or location whatever it was before, or removes it, or
// drops a whole collection.
type Dump struct {
	dir     *Directory
	stripe  int
	from    uint64 // hash of the next slot
	ended   bool   // no slots are left
	pending []pendingBig
	items   itemContext

	// OnLoc, if it is set, is called with every location that a Loader of the dump will see.
	OnLoc func(Loc)
	// Counts are of the slots dumped so far: those that a Loader will make.
	Counts Counts
	// ByHash ignores the order that hashes and sets have of their own: the dump is the same for the same elements.
	ByHash bool

	reader *Loader // finds the locations of elements
}

// pendingBig is a collection whose elements after the one named here are still to be dumped.
type pendingBig struct {
	h     uint64
	typ   Type
	key   string
	meta  Loc // of the last item
	begun bool
	elem  string
	index int64    // of a list: the next one
	id    StreamID // of a stream: the last one

	inserted bool      // of a list: only elements that were inserted are left,
	place    ListPlace // from this place on
}

// Dump returns a dump of a stripe that has not begun.
func (d *Directory) Dump(stripe int) Dump {
	return Dump{dir: d, stripe: stripe, from: uint64(stripe) << (64 - stripeBits), items: itemContext{stripe: stripe}}
}

// Done reports whether nothing is left to append.
func (d *Dump) Done() bool { return d.ended && len(d.pending) == 0 }

// Append appends the next piece to b, about that many bytes. The caller holds the lock of the
// stripe, shared.
func (d *Dump) Append(b []byte, most int) []byte {
	for limit := len(b) + most; len(b) < limit && !d.Done(); {
		if len(d.pending) > 0 {
			b = d.appendBig(b, limit)
		} else {
			b = d.appendSlots(b, limit)
		}
	}
	return b
}

// appendSlots appends slots and small collections, up to the next big collection. All slots
// of one hash go into one piece, because their order may change between two.
func (d *Dump) appendSlots(b []byte, limit int) []byte {
	st := d.dir.stripes[d.stripe].Load()
	if st == nil {
		d.ended = true
		return b
	}
	last, first := uint64(0), true
	d.ended = st.scan(d.from, func(word, loc uint64) bool {
		h := word &^ typeMask
		if !first && h != last && (len(b) >= limit || len(d.pending) > 0) {
			d.from = h
			return false
		}
		last, first = h, false
		s := unpack(word, loc)
		d.Counts.count(s.Type)
		if s.Type.hasCollection() {
			b = d.appendCollection(b, h, Collection{set: &st.collections, id: uint32(loc)})
			return true
		}
		d.see(s.Loc)
		b = d.items.append(b, h, s.Type, s.Loc)
		return true
	})
	return b
}

func (d *Dump) see(loc Loc) {
	if d.OnLoc != nil && loc != 0 {
		d.OnLoc(loc)
	}
}

// seeElements calls OnLoc for the n elements in b, as a Loader would.
func (d *Dump) seeElements(t Type, n int, b []byte) {
	if d.OnLoc == nil || n == 0 {
		return
	}
	if d.reader == nil {
		d.reader = &Loader{OnLoc: func(loc Loc) bool {
			d.OnLoc(loc)
			return true
		}}
	}
	if _, end, ok := d.reader.measure(t, n, b); !ok || end != len(b) {
		panic("BUG: keydir: dump of an element")
	}
}

// appendItem appends the item of a collection without elements. count is the offset at which
// the number of elements belongs.
func (d *Dump) appendItem(b []byte, h uint64, t Type, meta Loc, key string) (_ []byte, count int) {
	b = d.items.append(b, h, t, meta)
	count = len(b)
	b = binary.LittleEndian.AppendUint32(b, countWord(t, 0))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(key)))
	return append(b, key...), count
}

// appendCollection appends a small collection, or the item of a big one whose elements come later.
func (d *Dump) appendCollection(b []byte, h uint64, c Collection) []byte {
	d.see(c.Meta())
	if g := c.set.big(c.id); g != nil {
		b, _ = d.appendItem(b, h, g.typ, g.meta, g.key)
		d.pending = append(d.pending, pendingBig{h: h, typ: g.typ, key: g.key, meta: g.meta})
		return b
	}
	s := c.set.small(c.id)
	b, count := d.appendItem(b, h, s.typ(), s.meta(), asString(s.key()))
	n, from := s.n(), len(b)
	switch {
	case s.typ() == Stream:
		b = appendRunOf(b, streamRun(s.body()))
	case s.typ().Named():
		b, _ = (&pendingBig{}).appendSmall(b, c, d.ByHash && s.typ().hasOrder())
	case n > 0:
		n = s.span()
		b = append(b, s.body()...)
	}
	binary.LittleEndian.PutUint32(b[count:], countWord(s.typ(), n))
	d.seeElements(s.typ(), n, b[from:])
	return b
}

// streamItem marks the number of elements in an item of a stream, groupsItem that of its groups, and insertedItem that of
// the inserted elements of a list.
const (
	streamItem   = 1 << 31
	groupsItem   = 1 << 30
	insertedItem = 1 << 30
)

func countWord(t Type, n int) uint32 {
	switch t {
	case Stream:
		return streamItem | uint32(n)
	case StreamGroups:
		return groupsItem | uint32(n)
	}
	return uint32(n)
}

// appendElements appends elements until b reaches the limit, and returns the name of the last
// one; nil if there are no more.
func appendElements(b []byte, cur cursor, limit int) (_ []byte, n int, last []byte) {
	for len(b) < limit {
		e, ok := cur.next()
		if !ok {
			return b, n, nil
		}
		last = cur.entries.nameOf(e)
		b = binary.AppendUvarint(b, uint64(len(last)))
		b = append(b, cur.entries.data[e.name:e.end]...)
		n++
	}
	return b, n, last
}

// appendBig appends elements of the first pending collection. One that was dropped since,
// or has another type now, stays incomplete: the replay of changes drops it.
func (d *Dump) appendBig(b []byte, limit int) []byte {
	p := &d.pending[0]
	c, ok := d.dir.findCollection(p.h, p.key, setOf(p.typ))
	if !ok {
		d.pending = d.pending[1:]
		return b
	}
	var count, n int
	var more bool
	if meta := c.Meta(); meta != p.meta {
		d.see(meta)
		p.meta = meta
	}
	b, count = d.appendItem(b, p.h, p.typ, p.meta, p.key)
	from := len(b)
	switch {
	case p.inserted:
		b, n, more = p.appendInserted(b, c, limit)
	case p.typ.Indexed():
		b, n, more = p.appendIndexes(b, c)
	case p.typ == Stream:
		b, n, more = p.appendEntries(b, c)
	default:
		b, n, more = p.appendMembers(b, c, limit, d.ByHash)
	}
	binary.LittleEndian.PutUint32(b[count:], countWord(p.typ, n))
	d.seeElements(p.typ, n, b[from:])
	if !more {
		d.pending = d.pending[1:]
	}
	return b
}

// appendMembers appends elements in order of hash; all of them in their own order if that is kept and wanted.
func (p *pendingBig) appendMembers(b []byte, c Collection, limit int, byHash bool) (_ []byte, n int, more bool) {
	g := c.set.big(c.id)
	if g == nil {
		b, n = p.appendSmall(b, c, byHash)
		return b, n, false
	}
	if g.order.kept && !p.begun && !byHash {
		var room orderedElems
		g.inOrder(&room)
		for _, place := range room.places[:g.members.n] {
			e := &room.byHash[place]
			b = append(binary.AppendUvarint(b, uint64(e.name)), e.entry...)
		}
		return b, g.members.n, false
	}
	hash := uint64(0)
	if p.begun {
		hash = c.HashOf(p.elem)
	}
	at, found := g.members.seek(hash, p.elem)
	cur := g.members.cursor(at)
	if p.begun && found {
		cur.next()
	}
	b, n, last := appendElements(b, cur, max(limit, len(b)+1))
	p.begun, p.elem = true, string(last)
	return b, n, last != nil
}

// appendSmall appends the elements of a small collection: those that are left of one that was big when it was begun.
func (p *pendingBig) appendSmall(b []byte, c Collection, byHash bool) (_ []byte, n int) {
	entries := c.set.small(c.id).entries(c.set.hash)
	if !p.begun && !byHash {
		b, n, _ = appendElements(b, cursor{entries: entries}, len(b)+1<<30)
		return b, n
	}
	hash := c.HashOf(p.elem)
	var room smallEntries
	for _, e := range entries.byHash(&room) {
		if name := entries.nameOf(e); !p.begun || cmp.Or(cmp.Compare(entries.key(e), hash), cmp.Compare(asString(name), p.elem)) > 0 {
			b = binary.AppendUvarint(b, uint64(len(name)))
			b = append(b, entries.data[e.name:e.end]...)
			n++
		}
	}
	return b, n
}

// appendIndexes appends one page of a list: the next one that has elements.
func (p *pendingBig) appendIndexes(b []byte, c Collection) (_ []byte, n int, more bool) {
	from, tail := c.Bounds()
	if p.begun {
		from = max(from, p.index)
	}
	p.begun = true
	if tail < from || c.Len() == 0 {
		return b, 0, p.appendsInserted(c)
	}
	g := c.set.big(c.id)
	if g == nil { // it has shrunk since
		s := c.set.small(c.id)
		skip := int(from - s.head())
		b = binary.LittleEndian.AppendUint64(b, uint64(from))
		return append(b, s.body()[8+8*skip:]...), s.span() - skip, false
	}
	from, ok := g.list.firstFrom(from)
	if !ok {
		return b, 0, p.appendsInserted(c)
	}
	no, slot := from>>listShift, int(from&(listSlots-1))
	page, _ := g.list.pages.Get(listPage{no: no})
	l := locs(g.arena.block(page.page))
	b = binary.LittleEndian.AppendUint64(b, uint64(from))
	b = append(b, l.slots()[8*(slot-l.first()):]...)
	p.index = (no + 1) << listShift
	return b, l.first() + l.span() - slot, no < tail>>listShift || p.appendsInserted(c)
}

// appendsInserted goes on to the inserted elements, and reports whether there are any.
func (p *pendingBig) appendsInserted(c Collection) bool {
	g := c.set.big(c.id)
	p.inserted, p.place = g != nil && g.list.inserted != nil, ListPlace{Index: math.MinInt64}
	return p.inserted
}

// appendInserted appends inserted elements of a list until b reaches the limit.
func (p *pendingBig) appendInserted(b []byte, c Collection, limit int) (_ []byte, n int, more bool) {
	g := c.set.big(c.id)
	if g == nil { // it has shrunk since: none are left
		return b, 0, false
	}
	g.list.eachInserted(p.place, func(at ListPlace, loc Loc) bool {
		if more = n > 0 && len(b) >= limit; more {
			p.place = at
			return false
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(at.Index))
		b = binary.LittleEndian.AppendUint64(b, at.Sub)
		b = binary.LittleEndian.AppendUint64(b, uint64(loc))
		n++
		return true
	})
	if n == 0 {
		return b, 0, false
	}
	return b, n | insertedItem, more
}
