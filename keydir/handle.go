package keydir

// MaxName is the greatest length of a key's or an element's name, in bytes.
const MaxName = 1<<16 - 1

// Collection is a hash, list, set, sorted set or long string: the names of its elements with their locations, in order and
// counted. It is a small handle, good until the collection is dropped; the zero Collection is not valid.
//
// The elements of hashes, sets and sorted sets are ordered by hash, then name; those of
// sorted sets also by score, then name; those of lists, and the chunks of a string, by index. A method
// that does not fit the collection's type panics.
//
// Names handed out as byte slices are the collection's own memory: they are good until
// the next change of this collection, and must not be written to. Functions passed to
// methods must not change this collection; they may change others.
type Collection struct {
	fs *collectionSet
	id uint32
}

// Valid reports whether f is a collection at all.
func (f Collection) Valid() bool { return f.fs != nil }

// Type returns Hash, List, Set, ZSet, FieldDeadlines or Chunks.
func (f Collection) Type() Type {
	if g := f.fs.big(f.id); g != nil {
		return g.typ
	}
	return f.fs.small(f.id).typ()
}

// Key returns the user key.
func (f Collection) Key() string {
	if g := f.fs.big(f.id); g != nil {
		return g.key
	}
	return string(f.fs.small(f.id).key())
}

func (f Collection) hasKey(key string) bool {
	if g := f.fs.big(f.id); g != nil {
		return g.key == key
	}
	return string(f.fs.small(f.id).key()) == key
}

// Len returns the number of elements.
func (f Collection) Len() int {
	g := f.fs.big(f.id)
	switch {
	case g == nil:
		return f.fs.small(f.id).n()
	case g.typ.Indexed():
		return g.list.n
	}
	return g.members.n
}

// Full reports whether there is no room for one more element: the collection takes
// 16 GiB, or the small collections of its stripe do. Whoever adds one all the same may
// exceed what can be addressed, which panics.
func (f Collection) Full() bool {
	if g := f.fs.big(f.id); g != nil {
		return g.arena.full(*f.fs.most)
	}
	return f.fs.arena.full(*f.fs.most)
}

// Bytes returns the memory that the collection takes, without its slot.
func (f Collection) Bytes() int {
	if g := f.fs.big(f.id); g != nil {
		return g.arena.held
	}
	return len(f.fs.small(f.id))
}

// Meta returns the location of the collection's meta records, as set by SetMeta.
func (f Collection) Meta() Loc {
	if g := f.fs.big(f.id); g != nil {
		return g.meta
	}
	return f.fs.small(f.id).meta()
}

// SetMeta notes where the collection's meta records are.
func (f Collection) SetMeta(loc Loc) {
	if g := f.fs.big(f.id); g != nil {
		g.meta = loc
		return
	}
	f.fs.small(f.id).setMeta(loc)
}

// HashOf returns the hash by which elements are ordered.
func (f Collection) HashOf(elem string) uint64 { return f.fs.hash.sum(elem) }

// Each calls fn for all elements, in no particular order, until fn returns false. Those
// of lists have no name.
func (f Collection) Each(fn func(elem []byte, loc Loc) bool) {
	if g := f.fs.big(f.id); g != nil {
		g.each(fn)
		return
	}
	f.fs.small(f.id).each(f.fs.hash, fn)
}

func (g *big) each(fn func(elem []byte, loc Loc) bool) {
	if g.typ.Indexed() {
		g.list.each(fn)
		return
	}
	eachOf(g.members.cursor(spot{}), fn)
}

func (f small) each(h *hasher, fn func(elem []byte, loc Loc) bool) {
	if f.typ().Indexed() {
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

// must panics if the collection's type is not among those a method is for.
func must(method string, t Type, ok bool) {
	if !ok {
		panic("BUG: keydir: " + method + " on a " + t.String())
	}
}

// place is where an element of a collection is, or would be.
type place struct {
	hash  uint64
	typ   Type
	found bool
	big   *big // nil in a small collection
	at    spot // without group and page in a small collection
	run   run
	e     entry // if found
}

// seek looks for an element of a collection other than a list.
func (f Collection) seek(elem string, p *place) {
	p.hash = f.HashOf(elem)
	if p.big = f.fs.big(f.id); p.big != nil {
		p.typ = p.big.typ
		must("element access", p.typ, !p.typ.Indexed())
		x := &p.big.members
		if p.at, p.found = x.seek(p.hash, elem); !p.found {
			return
		}
		p.run = x.run(x.groups[p.at.group].refs[p.at.page].page)
	} else {
		s := f.fs.small(f.id)
		p.typ = s.typ()
		must("element access", p.typ, !p.typ.Indexed())
		p.run = s.run(f.fs.hash)
		p.at.off, p.at.i, p.found = p.run.seek(p.hash, elem)
	}
	if p.found {
		p.e = p.run.entryAt(p.at.off)
	}
}

// Get returns the location of an element.
func (f Collection) Get(elem string) (Loc, bool) {
	var p place
	if f.seek(elem, &p); !p.found {
		return 0, false
	}
	return p.run.loc(p.e), true
}

// Put sets the location of an element of a hash or set, and returns the one it had.
func (f Collection) Put(elem string, loc Loc) (old Loc, existed bool) {
	var p place
	f.seek(elem, &p)
	must("Put", p.typ, !p.typ.scored())
	if !p.found {
		f.add(elem, &p, loc, 0)
		return 0, false
	}
	old = p.run.loc(p.e)
	p.run.setLoc(p.e, loc)
	return old, true
}

// add puts an element where seek said it would be.
func (f Collection) add(elem string, p *place, loc Loc, score uint64) {
	if len(elem) > MaxName {
		panic("BUG: keydir: element is too long")
	}
	if p.big == nil {
		if s, ok := f.fs.insertAt(f.id, p.at.off, p.run.shape.entrySize(len(elem))); ok {
			s.setBody(s.n()+1, s.used())
			r := s.run(f.fs.hash)
			r.write(p.at.off, p.hash, elem, loc, score)
			return
		}
		p.big = f.fs.promote(f.id)
		p.at, _ = p.big.members.seek(p.hash, elem)
	}
	p.big.insert(p.at, p.hash, elem, loc, score)
}

// Delete removes an element of a hash or set and returns the location it had.
func (f Collection) Delete(elem string) (old Loc, existed bool) {
	var p place
	f.seek(elem, &p)
	must("Delete", p.typ, !p.typ.scored())
	_, old, existed = f.remove(elem, &p)
	return old, existed
}

// remove takes out the element that seek found, if it did.
func (f Collection) remove(elem string, p *place) (score uint64, old Loc, existed bool) {
	if !p.found {
		return 0, 0, false
	}
	old = p.run.loc(p.e)
	if p.run.shape == scored {
		score = p.run.score(p.e)
	}
	if p.big == nil {
		s := f.fs.small(f.id)
		s.setBody(s.n()-1, s.used())
		f.fs.removeAt(f.id, p.at.off, p.e.end-p.e.off)
		return score, old, true
	}
	if scores := p.big.scores; scores != nil {
		at, _ := scores.seek(score, elem)
		scores.remove(at)
	}
	p.big.members.remove(p.at)
	f.fs.demote(f.id, p.big)
	return score, old, true
}

// At returns the i-th element in order of hash, 0 <= i < Len.
func (f Collection) At(i int) (elem []byte, loc Loc) {
	if g := f.fs.big(f.id); g != nil {
		must("At", g.typ, !g.typ.Indexed())
		at := g.members.at(i)
		r := g.members.run(g.members.groups[at.group].refs[at.page].page)
		e := r.entryAt(at.off)
		return r.nameOf(e), r.loc(e)
	}
	s := f.fs.small(f.id)
	must("At", s.typ(), !s.typ().Indexed())
	r := s.run(f.fs.hash)
	e := r.entryAt(r.at(i))
	return r.nameOf(e), r.loc(e)
}

// Scan calls fn for the elements in ascending order of hash, then name, from
// those whose hash is fromHash on, until fn returns false.
func (f Collection) Scan(fromHash uint64, fn func(hash uint64, elem []byte, loc Loc) bool) {
	var c cursor
	if g := f.fs.big(f.id); g != nil {
		must("Scan", g.typ, !g.typ.Indexed())
		at, _ := g.members.seek(fromHash, "")
		c = g.members.cursor(at)
	} else {
		s := f.fs.small(f.id)
		must("Scan", s.typ(), !s.typ().Indexed())
		c.run = s.run(f.fs.hash)
		c.off, _, _ = c.run.seek(fromHash, "")
	}
	for e, ok := c.next(); ok; e, ok = c.next() {
		if !fn(c.run.key(e), c.run.nameOf(e), c.run.loc(e)) {
			return
		}
	}
}
