package keydir

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/stavedb/stave/internal/number"
)

// ErrDump means that bytes are not a valid dump of the stripe.
var ErrDump = errors.New("keydir: not a dump of this stripe")

// Loader fills stripes from their dumps. It keeps no reference to the dumps and serves one
// goroutine; loaders of different stripes run in parallel.
type Loader struct {
	// OnLoc is called with every location. If it returns false, Load refuses the dump.
	OnLoc func(Loc) bool
	// Rebuilt says that the dumps are not those that Directory.Promise was told of, so that
	// their counts may differ.
	Rebuilt bool

	slots       []uint64           // two words each, of the stripe
	collections []dumpedCollection // of the current hash
	counts      Counts             // of the slots; added to the directory, which other loaders fill at the same time, at the end
	page        pageBuilder
	ranked      []rankedName
}

// dumpedCollection is a collection as its items describe it.
type dumpedCollection struct {
	typ   Type
	meta  Loc
	key   []byte
	n     int // elements
	size  int // bytes of them, packed
	parts []part
}

// part is the n elements of one item, as in the dump.
type part struct {
	n        int
	body     []byte
	inserted bool // of a list
}

// rankedName is an element to be sorted by score.
type rankedName struct {
	score uint64
	name  []byte
}

// Load fills an empty stripe of a directory, or one that was promised, from a dump. The caller
// holds the lock of the stripe. After an error the stripe is as before. The dump of a promised
// stripe must have the promised counts.
//
// I8: a damaged dump never changes the state. Load checks all of it: no dump makes it panic
// or take memory out of proportion to the dump's length, and what it accepts keeps the
// invariants of the package. It does not check that the hash of a collection's slot is that
// of the collection's key, nor whether elements of the last collection are missing: a sum of
// the dump's bytes is for its owner to check.
func (l *Loader) Load(d *Directory, stripe int, dump []byte) error {
	st := newStripe(d)
	promised, bound := d.Promised(stripe)
	if !l.read(st, stripe, dump) || bound && !l.Rebuilt && l.counts != promised {
		st.collections.uncount()
		return ErrDump
	}
	st.fill(l.slots)
	st.publish()
	d.stripes[stripe].Store(st)
	// At once: whoever reads the counts meanwhile, which takes no lock, must not find them without the stripe.
	d.replaceCounts(promised, l.counts)
	return nil
}

// read reads a dump: collections into the stripe, slots into l.
func (l *Loader) read(st *stripe, stripe int, dump []byte) (ok bool) {
	l.slots, l.collections, l.counts = l.slots[:0], l.collections[:0], Counts{}
	items := itemContext{stripe: stripe}
	b, ok := items.open(dump)
	if !ok {
		return false
	}
	var last uint64
	for len(b) > 0 {
		h, t, loc, n := items.next(b)
		if n == 0 || h != last && !l.finishHash(st, last) {
			return false
		}
		b = b[n:]
		same := len(l.slots) > 0 && h == last
		last = h
		switch word, ref := pack(h, Slot{t, loc}); {
		case t.hasCollection():
			if b, ok = l.readCollection(t, loc, b); !ok {
				return false
			}
		case isChunks(word, ref) || !l.OnLoc(loc):
			return false
		default:
			l.slots = append(l.slots, word, ref)
			l.counts.count(t)
			if same {
				l.sortSameHash()
			}
		}
	}
	return l.finishHash(st, last)
}

// sortSameHash moves the last slot before greater ones of the same hash, so that the result
// of Load does not depend on the order of their insertion. Slots of collections follow them.
func (l *Loader) sortSameHash() {
	for i := len(l.slots) - slotWords; i > 0; i -= slotWords {
		a, b := l.slots[i-slotWords:i], l.slots[i:i+slotWords]
		if a[0]>>3 != b[0]>>3 || slices.Compare(a, b) <= 0 {
			return
		}
		a[0], a[1], b[0], b[1] = b[0], b[1], a[0], a[1]
	}
}

// itemOf reads the beginning of an item of a collection: what it is of, and how many elements follow.
func itemOf(t Type, b []byte) (_ Type, n int, key, rest []byte, ok bool) {
	if len(b) < 6 {
		return t, 0, nil, nil, false
	}
	count, length := binary.LittleEndian.Uint32(b), int(binary.LittleEndian.Uint16(b[4:]))
	switch {
	case t != Chunks:
	case count&streamItem != 0:
		t, count = Stream, count&^streamItem
	case count&groupsItem != 0:
		t, count = StreamGroups, count&^groupsItem
	}
	b = b[6:]
	if len(b) < length {
		return t, 0, nil, nil, false
	}
	return t, int(count), b[:length], b[length:], true
}

// readCollection reads one item of a collection.
func (l *Loader) readCollection(t Type, meta Loc, b []byte) (rest []byte, ok bool) {
	t, n, name, b, ok := itemOf(t, b)
	if !ok {
		return nil, false
	}
	i := slices.IndexFunc(l.collections, func(s dumpedCollection) bool { return s.typ == t && bytes.Equal(s.key, name) })
	known := i >= 0 && l.collections[i].meta == meta // of the item before: it is one record
	if meta != 0 && !known && !l.OnLoc(meta) {
		return nil, false
	}
	if i < 0 {
		i = len(l.collections)
		l.collections = append(l.collections, dumpedCollection{typ: t, key: name})
	}
	dc := &l.collections[i]
	dc.meta = meta // that of the last item is the newest
	if n == 0 {
		return b, true
	}
	size, end, ok := l.measure(t, n, b)
	if !ok {
		return nil, false
	}
	inserted := t == List && n&insertedItem != 0
	if inserted {
		n &^= insertedItem
	}
	dc.n += n
	dc.size += size
	dc.parts = append(dc.parts, part{n, b[:end], inserted})
	return b[end:], true
}

// measure walks n elements and returns their size, packed, and their size in the dump.
func (l *Loader) measure(t Type, n int, b []byte) (size, end int, ok bool) {
	if t == Stream {
		return l.measureStream(n, b)
	}
	if t == List && n&insertedItem != 0 {
		return l.measureInserted(n&^insertedItem, b)
	}
	if t.Indexed() {
		if len(b) < 8 || n > (len(b)-8)/8 {
			return 0, 0, false
		}
		for i := range n {
			if loc := Loc(binary.LittleEndian.Uint64(b[8+8*i:])); loc != 0 && !l.OnLoc(loc) {
				return 0, 0, false
			}
		}
		return 8 * n, 8 + 8*n, true
	}
	layout := layoutOf(t)
	for range n {
		e, ok := readElement(b[end:], layout)
		if !ok || !l.OnLoc(e.loc) {
			return 0, 0, false
		}
		size += layout.entrySize(len(e.name))
		end += e.size
	}
	return size, end, true
}

// dumpedElem is one element of a dump.
type dumpedElem struct {
	name  []byte
	loc   Loc
	score uint64
	size  int
}

// readElement reads the element at the start of b. ok is false if b does not hold all of it.
func readElement(b []byte, layout layout) (e dumpedElem, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > MaxName || len(b) < n+int(length)+layout.tail() {
		return e, false
	}
	end := n + int(length)
	e.name = b[n:end:end]
	e.loc = Loc(binary.LittleEndian.Uint64(b[end:]))
	if layout == scored {
		e.score = binary.LittleEndian.Uint64(b[end+8:])
	}
	e.size = end + layout.tail()
	return e, true
}

// finishHash makes the collections of one hash, in an order that does not depend on the order
// of their insertion.
func (l *Loader) finishHash(st *stripe, word uint64) bool {
	if len(l.collections) == 0 {
		return true
	}
	slices.SortFunc(l.collections, func(a, b dumpedCollection) int { return cmp.Or(cmp.Compare(a.typ, b.typ), bytes.Compare(a.key, b.key)) })
	for i := range l.collections {
		dc := &l.collections[i]
		id, ok := l.build(&st.collections, dc)
		if !ok {
			return false
		}
		slot, ref := pack(word, Slot{dc.typ, Loc(id)})
		l.slots = append(l.slots, slot, ref)
		l.counts.count(dc.typ)
	}
	clear(l.collections)
	l.collections = l.collections[:0]
	return true
}

// build makes a collection of its parts. It reports false if they are not in order.
func (l *Loader) build(cs *collectionSet, dc *dumpedCollection) (id uint32, ok bool) {
	cs.makeArena()
	id = cs.arena.newHandle()
	if dc.typ.Indexed() {
		return id, dc.loadList(cs, id)
	}
	if dc.typ == Stream {
		return id, dc.loadStream(cs, id)
	}
	if smallHeaderBytes+len(dc.key)+dc.size <= sizeLimit(dc.typ) {
		return id, dc.loadSmall(cs, id)
	}
	g := cs.newBig(dc.typ, string(dc.key))
	g.meta = dc.meta
	g.order = insertionOrder{}
	cs.setBig(id, g)
	if dc.anyOrder() {
		return id, l.loadOrdered(g, dc)
	}
	if !l.loadMembers(&g.members, dc) {
		return id, false
	}
	if g.scores != nil {
		l.loadScores(g.scores, dc)
	}
	return id, true
}

// anyOrder reports whether the elements may be in another order than that of their hashes.
func (dc *dumpedCollection) anyOrder() bool {
	return dc.typ.hasOrder() && len(dc.parts) <= 1 && dc.n <= orderedLimit && dc.size <= orderedBytes
}

// elements calls fn for the elements with their hashes, and reports whether these ascend, or need not.
func (dc *dumpedCollection) elements(h *hasher, fn func(hash uint64, e dumpedElem)) (ascending bool) {
	anyOrder := dc.anyOrder()
	var lastHash uint64
	var lastName []byte
	first := true
	for _, p := range dc.parts {
		for b := p.body; len(b) > 0; {
			e, _ := readElement(b, layoutOf(dc.typ))
			b = b[e.size:]
			hash := h.sumBytes(e.name)
			if !first && !anyOrder && (hash < lastHash || hash == lastHash && bytes.Compare(e.name, lastName) <= 0) {
				return false
			}
			lastHash, lastName, first = hash, e.name, false
			fn(hash, e)
		}
	}
	return true
}

// loadSmall writes the block of a small collection. It reports false if the elements are not in order, or one is there
// twice.
func (dc *dumpedCollection) loadSmall(cs *collectionSet, id uint32) bool {
	s := cs.writeHead(id, dc.typ, asString(dc.key), dc.size, dc.meta)
	s.setBody(dc.n, dc.size)
	entries := s.entries(cs.hash)
	off, unique := 0, true
	var tags [4]uint64 // a bit for each that has been seen
	return dc.elements(cs.hash, func(hash uint64, e dumpedElem) {
		if tag := allHashes.tag(hash); tags[tag>>6]>>(tag&63)&1 == 0 {
			tags[tag>>6] |= 1 << (tag & 63)
		} else if dc.typ.hasOrder() {
			before := entries
			before.data = entries.data[:off]
			_, _, found := before.find(hash, asString(e.name))
			unique = unique && !found
		}
		entries.write(off, hash, asString(e.name), e.loc, e.score)
		off += entries.layout.entrySize(len(e.name))
	}) && unique
}

// loadOrdered fills the members of a big collection that has its own order. It reports false if an element is there
// twice.
func (l *Loader) loadOrdered(g *big, dc *dumpedCollection) bool {
	type hashed struct {
		hash uint64
		dumpedElem
	}
	list := make([]hashed, 0, dc.n)
	order := insertionOrder{kept: true, integers: dc.typ == Set, upper: make([]uint32, 0, dc.n)}
	last := int64(math.MinInt64)
	dc.elements(g.members.hash, func(hash uint64, e dumpedElem) {
		list = append(list, hashed{hash, e})
		order.upper = append(order.upper, uint32(hash>>32))
		value, integer := number.ParseInt(e.name)
		if !integer && dc.typ == Set {
			order.others++
		}
		order.integers = order.integers && integer && value >= last
		last = value
	})
	if order.integers {
		order.upper = nil
	}
	g.setOrder(order)
	slices.SortFunc(list, func(a, b hashed) int { return cmp.Or(cmp.Compare(a.hash, b.hash), bytes.Compare(a.name, b.name)) })
	l.page.begin(&g.members)
	for i, e := range list {
		if i > 0 && e.hash == list[i-1].hash && bytes.Equal(e.name, list[i-1].name) {
			return false
		}
		l.page.add(e.hash, e.name, e.loc, 0)
	}
	l.page.end()
	return true
}

// loadMembers fills the members of a big collection. It reports false if they are not in order.
func (l *Loader) loadMembers(o *orderedPages, dc *dumpedCollection) bool {
	l.page.begin(o)
	if !dc.elements(o.hash, func(hash uint64, e dumpedElem) { l.page.add(hash, e.name, e.loc, e.score) }) {
		return false
	}
	l.page.end()
	return true
}

// loadScores makes the second order of a sorted set by sorting, which is cheaper than inserting.
func (l *Loader) loadScores(o *orderedPages, dc *dumpedCollection) {
	l.ranked = l.ranked[:0]
	for _, p := range dc.parts {
		for b := p.body; len(b) > 0; {
			e, _ := readElement(b, scored)
			b = b[e.size:]
			l.ranked = append(l.ranked, rankedName{e.score, e.name})
		}
	}
	slices.SortFunc(l.ranked, func(a, b rankedName) int {
		if a.score != b.score {
			return cmp.Compare(a.score, b.score)
		}
		return bytes.Compare(a.name, b.name)
	})
	l.page.begin(o)
	for _, r := range l.ranked {
		l.page.add(r.score, r.name, 0, 0)
	}
	l.page.end()
	clear(l.ranked)
}
