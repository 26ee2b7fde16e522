package keydir

import "github.com/stavedb/stave/internal/number"

// MaxName is the greatest length of a key's or an element's name, in bytes.
const MaxName = 1<<16 - 1

// Collection is a hash, list, set, sorted set, stream or long string: the names of its elements with
// their locations, in order and counted. It is a small handle, valid until the collection is
// dropped; the zero Collection is not valid.
//
// The elements of hashes, sets and sorted sets are ordered by hash, then name; those of
// sorted sets also by score, then name; those of lists, and the chunks of a string, by index, those
// of streams by id.
// Searches, changes and ranks take O(log n). A method that does not fit the collection's type
// panics.
//
// Names returned as byte slices are the collection's own memory: they are valid until the
// next change of this collection and must not be written to. Functions passed to methods
// must not change this collection; they may change others.
//
// Callers hold the lock of the key's stripe: shared for methods that read, exclusive for the
// others.
type Collection struct {
	set *collectionSet
	id  uint32
}

// Valid reports whether c is a collection, not the zero value.
func (c Collection) Valid() bool { return c.set != nil }

// Type returns Hash, List, Set, ZSet, FieldDeadlines, Chunks or Stream.
func (c Collection) Type() Type {
	if g := c.set.big(c.id); g != nil {
		return g.typ
	}
	return c.set.small(c.id).typ()
}

// Key returns the user key.
func (c Collection) Key() string {
	if g := c.set.big(c.id); g != nil {
		return g.key
	}
	return string(c.set.small(c.id).key())
}

// hasKey reports whether the collection belongs to a key, without copying its own.
func (c Collection) hasKey(key string) bool {
	if g := c.set.big(c.id); g != nil {
		return g.key == key
	}
	return string(c.set.small(c.id).key()) == key
}

// Len returns the number of elements.
func (c Collection) Len() int {
	g := c.set.big(c.id)
	switch {
	case g == nil:
		return c.set.small(c.id).n()
	case g.typ.Indexed():
		return g.list.n
	case g.typ == Stream:
		return g.stream.n
	}
	return g.members.n
}

// Private reports whether the collection has memory of its own, which no change of another one
// moves. It gets that when it outgrows a few hundred bytes.
func (c Collection) Private() bool { return c.set.big(c.id) != nil }

// Full reports whether there is no room for another element: the collection takes 16 GiB,
// or the small collections of its stripe do. Callers must not add to a full collection: what
// exceeds the address space panics.
func (c Collection) Full() bool {
	if g := c.set.big(c.id); g != nil {
		return g.arena.full(*c.set.arenaLimit)
	}
	return c.set.arena.full(*c.set.arenaLimit)
}

// Bytes returns the memory that the collection takes, without its slot.
func (c Collection) Bytes() int {
	if g := c.set.big(c.id); g != nil {
		return g.arena.held
	}
	return len(c.set.small(c.id))
}

// Meta returns the location of the collection's meta record, as set by SetMeta.
func (c Collection) Meta() Loc {
	if g := c.set.big(c.id); g != nil {
		return g.meta
	}
	return c.set.small(c.id).meta()
}

// SetMeta sets the location of the collection's meta record.
func (c Collection) SetMeta(loc Loc) {
	if g := c.set.big(c.id); g != nil {
		g.meta = loc
		return
	}
	c.set.small(c.id).setMeta(loc)
}

// HashOf returns the hash by which elements are ordered.
func (c Collection) HashOf(elem string) uint64 { return c.set.hash.sum(elem) }

// Each calls fn for all elements until fn returns false. Those of a hash or set of at most 512 elements come in the
// order in which they were added, integers of a set that has nothing else by value; those of others in no particular
// order. Elements of lists and streams have no name.
func (c Collection) Each(fn func(elem []byte, loc Loc) bool) {
	if g := c.set.big(c.id); g != nil {
		if !g.order.kept {
			g.each(fn)
			return
		}
		var room orderedElems
		g.inOrder(&room)
		for i := range g.members.n {
			if !fn(room.at(i)) {
				return
			}
		}
		return
	}
	c.set.small(c.id).each(c.set.hash, fn)
}

// each calls fn for all elements, those with names by hash, until fn returns false.
func (g *big) each(fn func(elem []byte, loc Loc) bool) {
	if g.typ.Indexed() {
		g.list.each(fn)
		return
	}
	if g.typ == Stream {
		g.stream.each(fn)
		return
	}
	eachOf(g.members.cursor(position{}), fn)
}

// each calls fn for all elements until fn returns false.
func (s small) each(h *hasher, fn func(elem []byte, loc Loc) bool) {
	if s.typ().Indexed() {
		for i := range s.span() {
			if loc := s.locAt(i); loc != 0 && !fn(nil, loc) {
				return
			}
		}
		return
	}
	if s.typ() == Stream {
		streamRun(s.body()).each(fn)
		return
	}
	eachOf(cursor{entries: s.entries(h)}, fn)
}

// eachOf calls fn for the entries of a cursor until fn returns false.
func eachOf(cur cursor, fn func(elem []byte, loc Loc) bool) {
	for e, ok := cur.next(); ok; e, ok = cur.next() {
		if !fn(cur.entries.nameOf(e), cur.entries.loc(e)) {
			return
		}
	}
}

// mustBe panics unless the collection's type is one that the method is for.
func mustBe(method string, t Type, ok bool) {
	if !ok {
		panic("BUG: keydir: " + method + " on a " + t.String())
	}
}

// elemPos is the position of an element of a collection, present or not.
type elemPos struct {
	hash    uint64
	typ     Type
	found   bool
	big     *big     // nil in a small collection
	pos     position // in a small collection without group and page
	entries packed
	entry   entry // if found
	place   Place // what rolling the change back needs
}

// seek searches for an element of a collection other than a list.
func (c Collection) seek(elem string, pos *elemPos) {
	pos.hash = c.HashOf(elem)
	if pos.big = c.set.big(c.id); pos.big != nil {
		pos.typ = pos.big.typ
		mustBe("element access", pos.typ, pos.typ.Named())
		o := &pos.big.members
		pos.pos, pos.found = o.seekPage(pos.hash, elem, &pos.entries)
	} else {
		s := c.set.small(c.id)
		pos.typ = s.typ()
		mustBe("element access", pos.typ, pos.typ.Named())
		pos.entries = s.entries(c.set.hash)
		if pos.typ.hasOrder() {
			pos.pos.off, pos.pos.i, pos.found = pos.entries.find(pos.hash, elem)
		} else {
			pos.pos.off, pos.pos.i, pos.found = pos.entries.seek(pos.hash, elem)
		}
	}
	if pos.found {
		pos.entry = pos.entries.entryAt(pos.pos.off)
	}
}

// Get returns the location of an element.
func (c Collection) Get(elem string) (Loc, bool) {
	var pos elemPos
	if c.seek(elem, &pos); !pos.found {
		return 0, false
	}
	return pos.entries.loc(pos.entry), true
}

// Put sets the location of an element of a hash or set, and returns the one it had.
func (c Collection) Put(elem string, loc Loc) (old Loc, existed bool) {
	old, existed, _ = c.PutNoted(elem, loc)
	return old, existed
}

// PutNoted is Put that can be rolled back: by RollbackPut if the element is new, else by Put with the old location.
func (c Collection) PutNoted(elem string, loc Loc) (old Loc, existed bool, place Place) {
	var pos elemPos
	c.seek(elem, &pos)
	mustBe("Put", pos.typ, !pos.typ.scored())
	if !pos.found {
		c.add(elem, &pos, loc, 0)
		return 0, false, pos.place
	}
	old = pos.entries.loc(pos.entry)
	pos.entries.setLoc(pos.entry, loc)
	return old, true, Place{}
}

// add inserts an element at the position that seek returned for it.
func (c Collection) add(elem string, pos *elemPos, loc Loc, score uint64) {
	if pos.big == nil && pos.typ == Set {
		if value, ok := number.ParseInt(elem); ok {
			if place, ascend := pos.entries.place(value); ascend {
				pos.pos.off = place
			}
		}
	}
	if !c.addSmall(elem, pos, loc, score) {
		pos.place.lost = pos.big.keepOrder(pos.hash, elem)
		pos.big.insert(pos.pos, pos.hash, elem, loc, score)
	}
}

// addSmall inserts an element into a small collection. It reports false if the collection is big, or has to become it,
// which it is then.
func (c Collection) addSmall(elem string, pos *elemPos, loc Loc, score uint64) bool {
	if len(elem) > MaxName {
		panic("BUG: keydir: element is too long")
	}
	if pos.big != nil {
		return false
	}
	if s, ok := c.set.insertAt(c.id, pos.pos.off, pos.entries.layout.entrySize(len(elem))); ok {
		s.setBody(s.n()+1, s.used())
		entries := s.entries(c.set.hash)
		entries.write(pos.pos.off, pos.hash, elem, loc, score)
		return true
	}
	pos.big = c.set.promote(c.id)
	pos.pos, _ = pos.big.members.seek(pos.hash, elem)
	return false
}

// Delete removes an element of a hash or set and returns the location it had.
func (c Collection) Delete(elem string) (old Loc, existed bool) {
	old, existed, _ = c.DeleteNoted(elem)
	return old, existed
}

// DeleteNoted is Delete that can be rolled back, by RollbackDelete.
func (c Collection) DeleteNoted(elem string) (old Loc, existed bool, place Place) {
	var pos elemPos
	c.seek(elem, &pos)
	mustBe("Delete", pos.typ, !pos.typ.scored())
	_, old, existed = c.remove(elem, &pos)
	return old, existed, pos.place
}

// remove removes the element that seek found, if it did.
func (c Collection) remove(elem string, pos *elemPos) (score uint64, old Loc, existed bool) {
	if !pos.found {
		return 0, 0, false
	}
	old = pos.entries.loc(pos.entry)
	if pos.entries.layout == scored {
		score = pos.entries.score(pos.entry)
	}
	if pos.big == nil {
		s := c.set.small(c.id)
		s.setBody(s.n()-1, s.used())
		c.set.removeAt(c.id, pos.pos.off, pos.entry.end-pos.entry.off)
		pos.place.index = pos.pos.i
		return score, old, true
	}
	if scores := pos.big.scores; scores != nil {
		at, _ := scores.seek(score, elem)
		scores.remove(at)
	}
	pos.place.index = pos.big.leaveOrder(pos.hash, elem)
	pos.big.members.remove(pos.pos)
	c.set.demote(c.id, pos.big)
	return score, old, true
}

// At returns the i-th element, 0 <= i < Len: in the order of Scan if the collection is Private, otherwise in that of Each.
func (c Collection) At(i int) (elem []byte, loc Loc) {
	if g := c.set.big(c.id); g != nil {
		mustBe("At", g.typ, g.typ.Named())
		at := g.members.at(i)
		entries := g.members.entries(g.members.groups[at.group].refs[at.page].page)
		e := entries.entryAt(at.off)
		return entries.nameOf(e), entries.loc(e)
	}
	s := c.set.small(c.id)
	mustBe("At", s.typ(), s.typ().Named())
	entries := s.entries(c.set.hash)
	e := entries.entryAt(entries.at(i))
	return entries.nameOf(e), entries.loc(e)
}

// Scan calls fn for the elements in ascending order of hash, then name, from
// those whose hash is fromHash on, until fn returns false.
func (c Collection) Scan(fromHash uint64, fn func(hash uint64, elem []byte, loc Loc) bool) {
	g := c.set.big(c.id)
	if g == nil {
		s := c.set.small(c.id)
		mustBe("Scan", s.typ(), s.typ().Named())
		entries := s.entries(c.set.hash)
		var room smallEntries
		for _, e := range entries.byHash(&room) {
			if hash := entries.key(e); hash >= fromHash && !fn(hash, entries.nameOf(e), entries.loc(e)) {
				return
			}
		}
		return
	}
	mustBe("Scan", g.typ, g.typ.Named())
	at, _ := g.members.seek(fromHash, "")
	cur := g.members.cursor(at)
	for e, ok := cur.next(); ok; e, ok = cur.next() {
		if !fn(cur.entries.key(e), cur.entries.nameOf(e), cur.entries.loc(e)) {
			return
		}
	}
}
