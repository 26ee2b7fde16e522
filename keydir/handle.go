package keydir

// MaxName is the greatest length of a key's or an element's name, in bytes.
const MaxName = 1<<16 - 1

// Family is a collection: the names of its elements with their locations, in order and
// counted. It is a small handle, good until the family is dropped; the zero Family is not valid.
//
// The elements of hashes, sets and sorted sets are ordered by hash, then name; those of
// sorted sets also by score, then name; those of lists by index. A method
// that does not fit the family's type panics.
//
// Names handed out as byte slices are the family's own memory: they are good until
// the next change of this family, and must not be written to. Functions passed to
// methods must not change this family; they may change others.
type Family struct {
	fs *families
	id uint32
}

// Valid reports whether f is a family at all.
func (f Family) Valid() bool { return f.fs != nil }

// Type returns Hash, List, Set or ZSet.
func (f Family) Type() Type {
	if g := f.fs.big(f.id); g != nil {
		return g.typ
	}
	return f.fs.small(f.id).typ()
}

// Key returns the user key.
func (f Family) Key() string {
	if g := f.fs.big(f.id); g != nil {
		return g.key
	}
	return string(f.fs.small(f.id).key())
}

func (f Family) hasKey(key string) bool {
	if g := f.fs.big(f.id); g != nil {
		return g.key == key
	}
	return string(f.fs.small(f.id).key()) == key
}

// Len returns the number of elements.
func (f Family) Len() int {
	g := f.fs.big(f.id)
	switch {
	case g == nil:
		return f.fs.small(f.id).n()
	case g.typ == List:
		return g.list.n
	}
	return g.members.n
}

// Meta returns the location of the family's meta records, as set by SetMeta.
func (f Family) Meta() Loc {
	if g := f.fs.big(f.id); g != nil {
		return g.meta
	}
	return f.fs.small(f.id).meta()
}

// SetMeta notes where the family's meta records are.
func (f Family) SetMeta(loc Loc) {
	if g := f.fs.big(f.id); g != nil {
		g.meta = loc
		return
	}
	f.fs.small(f.id).setMeta(loc)
}

// HashOf returns the hash by which elements are ordered.
func (f Family) HashOf(elem string) uint64 { return f.fs.hash.sum(elem) }

// Each calls fn for all elements, in no particular order, until fn returns false. Those
// of lists have no name.
func (f Family) Each(fn func(elem []byte, loc Loc) bool) {
	if g := f.fs.big(f.id); g != nil {
		g.each(fn)
		return
	}
	f.fs.small(f.id).each(f.fs.hash, fn)
}

func (g *big) each(fn func(elem []byte, loc Loc) bool) {
	if g.typ == List {
		g.list.each(fn)
		return
	}
	eachOf(g.members.cursor(spot{}), fn)
}

func (f small) each(h *hasher, fn func(elem []byte, loc Loc) bool) {
	if f.typ() == List {
		for i := range f.span() {
			if loc := f.locAt(i); loc != 0 && !fn(nil, loc) {
				return
			}
		}
		return
	}
	eachOf(cursor{run: f.run(h)}, fn)
}

func eachOf(c cursor, fn func(elem []byte, loc Loc) bool) {
	for e, ok := c.next(); ok; e, ok = c.next() {
		if !fn(c.run.nameOf(e), c.run.loc(e)) {
			return
		}
	}
}

// must panics if the family's type is not among those a method is for.
func must(method string, t Type, ok bool) {
	if !ok {
		panic("BUG: keydir: " + method + " on a " + t.String())
	}
}

// find returns the run and the entry of an element.
func (f Family) find(elem string) (r run, e entry, found bool) {
	hash := f.HashOf(elem)
	g := f.fs.big(f.id)
	if g == nil {
		s := f.fs.small(f.id)
		must("element access", s.typ(), s.typ() != List)
		r = s.run(f.fs.hash)
		off, _, found := r.seek(hash, elem)
		if found {
			e = r.entryAt(off)
		}
		return r, e, found
	}
	must("element access", g.typ, g.typ != List)
	at, found := g.members.seek(hash, elem)
	if found {
		r = g.members.run(g.members.groups[at.group].refs[at.page].page)
		e = r.entryAt(at.off)
	}
	return r, e, found
}

// Get returns the location of an element.
func (f Family) Get(elem string) (Loc, bool) {
	r, e, found := f.find(elem)
	if !found {
		return 0, false
	}
	return r.loc(e), true
}

// Put sets the location of an element of a hash or set, and returns the one it had.
func (f Family) Put(elem string, loc Loc) (old Loc, existed bool) {
	t := f.Type()
	must("Put", t, t == Hash || t == Set)
	r, e, found := f.find(elem)
	if found {
		old = r.loc(e)
		r.setLoc(e, loc)
		return old, true
	}
	f.add(elem, loc, 0)
	return 0, false
}

// add puts an element that is not there.
func (f Family) add(elem string, loc Loc, score uint64) {
	if len(elem) > MaxName {
		panic("BUG: keydir: element is too long")
	}
	hash := f.HashOf(elem)
	g := f.fs.big(f.id)
	if g == nil {
		s := f.fs.small(f.id)
		r := s.run(f.fs.hash)
		off, _, _ := r.seek(hash, elem)
		if s, ok := f.fs.insertAt(f.id, off, r.shape.entrySize(len(elem))); ok {
			s.setBody(s.n()+1, s.used())
			r = s.run(f.fs.hash)
			r.write(off, hash, elem, loc, score)
			return
		}
		g = f.fs.promote(f.id)
	}
	g.add(hash, elem, loc, score)
}

// Delete removes an element of a hash or set and returns the location it had.
func (f Family) Delete(elem string) (old Loc, existed bool) {
	t := f.Type()
	must("Delete", t, t == Hash || t == Set)
	_, old, existed = f.remove(elem)
	return old, existed
}

func (f Family) remove(elem string) (score uint64, old Loc, existed bool) {
	hash := f.HashOf(elem)
	g := f.fs.big(f.id)
	if g == nil {
		s := f.fs.small(f.id)
		r := s.run(f.fs.hash)
		off, _, found := r.seek(hash, elem)
		if !found {
			return 0, 0, false
		}
		e := r.entryAt(off)
		old = r.loc(e)
		if r.shape == scored {
			score = r.score(e)
		}
		s.setBody(s.n()-1, s.used())
		f.fs.removeAt(f.id, off, e.end-e.off)
		return score, old, true
	}
	at, found := g.members.seek(hash, elem)
	if !found {
		return 0, 0, false
	}
	r := g.members.run(g.members.groups[at.group].refs[at.page].page)
	e := r.entryAt(at.off)
	old = r.loc(e)
	if g.scores != nil {
		score = r.score(e)
		ranked, _ := g.scores.seek(score, elem)
		g.scores.remove(ranked)
	}
	g.members.remove(at)
	f.fs.demote(f.id, g)
	return score, old, true
}

// At returns the i-th element in order of hash, 0 <= i < Len.
func (f Family) At(i int) (elem []byte, loc Loc) {
	if g := f.fs.big(f.id); g != nil {
		must("At", g.typ, g.typ != List)
		at := g.members.at(i)
		r := g.members.run(g.members.groups[at.group].refs[at.page].page)
		e := r.entryAt(at.off)
		return r.nameOf(e), r.loc(e)
	}
	s := f.fs.small(f.id)
	must("At", s.typ(), s.typ() != List)
	r := s.run(f.fs.hash)
	e := r.entryAt(r.at(i))
	return r.nameOf(e), r.loc(e)
}

// Scan calls fn for the elements in ascending order of hash, then name, from
// those whose hash is fromHash on, until fn returns false.
func (f Family) Scan(fromHash uint64, fn func(hash uint64, elem []byte, loc Loc) bool) {
	var c cursor
	if g := f.fs.big(f.id); g != nil {
		must("Scan", g.typ, g.typ != List)
		at, _ := g.members.seek(fromHash, "")
		c = g.members.cursor(at)
	} else {
		s := f.fs.small(f.id)
		must("Scan", s.typ(), s.typ() != List)
		c.run = s.run(f.fs.hash)
		c.off, _, _ = c.run.seek(fromHash, "")
	}
	for e, ok := c.next(); ok; e, ok = c.next() {
		if !fn(c.run.key(e), c.run.nameOf(e), c.run.loc(e)) {
			return
		}
	}
}
