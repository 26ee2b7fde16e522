package keydir

import "unsafe"

// Estimated memory of a big collection, and of the B-tree entry of a page of a list or a stream.
const (
	bigBytes      = int(unsafe.Sizeof(big{})) + 256
	listPageBytes = int(unsafe.Sizeof(listPage{})) * 3 / 2

	streamPageBytes = int(unsafe.Sizeof(streamPage{})) * 3 / 2
)

// NewCollection makes an empty collection and inserts its slot. It does not check whether the
// key has one already.
func (d *Directory) NewCollection(h uint64, t Type, key string) Collection {
	if !t.hasCollection() {
		panic("BUG: keydir: collection of type " + t.String())
	}
	c := Collection{set: &d.ensureStripe(h).collections}
	c.id = c.set.create(t, key)
	d.Insert(h, Slot{t, Loc(c.id)})
	return c
}

// CollectionOf returns the collection of a slot that leads to one.
func (d *Directory) CollectionOf(h uint64, s Slot) Collection {
	return Collection{set: &d.stripe(h).collections, id: uint32(s.Loc)}
}

// FindCollection returns the collection that a key holds.
func (d *Directory) FindCollection(h uint64, key string) (Collection, bool) {
	return d.findCollection(h, key, collectionTypes)
}

// Alongside are the types of collections that stand alongside one that a key holds: the deadlines of the fields of a
// hash, and what the groups of a stream have.
var Alongside = [...]Type{FieldDeadlines, StreamGroups}

// FindAlongside returns the collection of one of these types that stands alongside that of a key, if there is one.
func (d *Directory) FindAlongside(h uint64, key string, t Type) (Collection, bool) {
	if d.fieldDeadlines.Load() == 0 {
		return Collection{}, false
	}
	return d.findCollection(h, key, setOf(t))
}

// findCollection returns the collection of a key that has one of some types. The hash may have
// slots of other keys, so the collection's own key decides.
func (d *Directory) findCollection(h uint64, key string, types typeSet) (Collection, bool) {
	for i := 0; ; i++ {
		s, ok := d.Find(h, i)
		if !ok {
			return Collection{}, false
		}
		if !types.has(s.Type) {
			continue
		}
		if c := d.CollectionOf(h, s); c.hasKey(key) {
			return c, true
		}
	}
}

// Dropped is a collection that is no longer in the directory. It owns its memory and needs no
// lock.
type Dropped struct {
	typ   Type
	id    uint32
	block small // of a small collection
	big   *big
	hash  *hasher
}

// DropCollection removes a collection and its slot from the directory, in O(1). Handles of the
// collection are no longer valid.
func (d *Directory) DropCollection(h uint64, c Collection) Dropped {
	x := Dropped{typ: c.Type(), id: c.id, hash: &d.hash}
	if !d.Delete(h, Slot{x.typ, Loc(c.id)}) {
		panic("BUG: keydir: dropped collection has no slot")
	}
	if x.big = c.set.big(c.id); x.big != nil {
		c.set.detachBig(c.id)
	} else {
		s := c.set.small(c.id)
		x.block = append(small(nil), s[:smallHeaderBytes+s.keyLen()+s.used()]...)
		c.set.arena.release(c.id)
	}
	c.set.arena.freeHandle(c.id)
	return x
}

// Restore puts a dropped collection back. x must not be used again. If all changes since the
// drop to collections of the same stripe have been rolled back, last first, the collection
// gets its old reference, and handles from before the drop are valid again.
func (d *Directory) Restore(h uint64, x Dropped) Collection {
	c := Collection{set: &d.ensureStripe(h).collections}
	c.set.makeArena()
	c.id = c.set.arena.newHandle()
	if x.big != nil {
		c.set.setBig(c.id, x.big)
		c.set.bytes.Add(int64(x.big.arena.held))
	} else {
		copy(c.set.arena.alloc(c.id, len(x.block)), x.block)
	}
	d.Insert(h, Slot{x.typ, Loc(c.id)})
	return c
}

// Type returns the type the collection had.
func (x Dropped) Type() Type { return x.typ }

// Len returns the number of elements the collection had.
func (x Dropped) Len() int {
	switch {
	case x.big == nil && x.block == nil:
		return 0
	case x.big == nil:
		return x.block.n()
	case x.typ.Indexed():
		return x.big.list.n
	case x.typ == Stream:
		return x.big.stream.n
	}
	return x.big.members.n
}

// Each calls fn for the location of the meta record, if there is one, and of every element,
// until fn returns false.
func (x Dropped) Each(fn func(Loc) bool) {
	if x.big == nil && x.block == nil {
		return
	}
	meta := Loc(0)
	if x.big != nil {
		meta = x.big.meta
	} else {
		meta = x.block.meta()
	}
	if meta != 0 && !fn(meta) {
		return
	}
	each := func(_ []byte, loc Loc) bool { return fn(loc) }
	if x.big != nil {
		x.big.each(each)
	} else {
		x.block.each(x.hash, each)
	}
}
