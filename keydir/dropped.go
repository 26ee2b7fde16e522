package keydir

import "unsafe"

// What accounting takes a big collection and a list page's place in the tree for.
const (
	bigBytes      = int(unsafe.Sizeof(big{})) + 256
	listPageBytes = int(unsafe.Sizeof(listPage{})) * 3 / 2
)

// NewCollection makes an empty collection and inserts its slot. It does not look for one with
// that key.
func (d *Directory) NewCollection(h uint64, t Type, key string) Collection {
	if !t.hasCollection() {
		panic("BUG: keydir: family of type " + t.String())
	}
	f := Collection{fs: &d.grown(h).collections}
	f.id = f.fs.create(t, key)
	d.Insert(h, Slot{t, Loc(f.id)})
	return f
}

// CollectionOf returns the collection of a slot that leads to one.
func (d *Directory) CollectionOf(h uint64, s Slot) Collection {
	return Collection{fs: &d.at(h).collections, id: uint32(s.Loc)}
}

// FindCollection returns the collection that a key holds.
func (d *Directory) FindCollection(h uint64, key string) (Collection, bool) {
	return d.findCollection(h, key, collectionTypes)
}

// FindFieldDeadlines returns the deadlines of the fields of a hash, if any field has one.
func (d *Directory) FindFieldDeadlines(h uint64, key string) (Collection, bool) {
	if d.expiring.Load() == 0 {
		return Collection{}, false
	}
	return d.findCollection(h, key, setOf(FieldDeadlines))
}

func (d *Directory) findCollection(h uint64, key string, types typeSet) (Collection, bool) {
	for i := 0; ; i++ {
		s, ok := d.Find(h, i)
		if !ok {
			return Collection{}, false
		}
		if !types.has(s.Type) {
			continue
		}
		if f := d.CollectionOf(h, s); f.hasKey(key) {
			return f, true
		}
	}
}

// Dropped is a collection that is no longer in the directory. It needs no lock: its memory
// is its own.
type Dropped struct {
	typ   Type
	id    uint32
	block small // of a small collection
	big   *big
	hash  *hasher
}

// DropCollection takes a collection and its slot out of the directory, in O(1). Handles of the
// collection are no longer valid.
func (d *Directory) DropCollection(h uint64, f Collection) Dropped {
	x := Dropped{typ: f.Type(), id: f.id, hash: &d.hash}
	if !d.Delete(h, Slot{x.typ, Loc(f.id)}) {
		panic("BUG: keydir: dropped family has no slot")
	}
	if x.big = f.fs.big(f.id); x.big != nil {
		f.fs.clear(f.id)
	} else {
		s := f.fs.small(f.id)
		x.block = append(small(nil), s[:smallHead+s.keyLen()+s.used()]...)
		f.fs.arena.release(f.id)
	}
	f.fs.arena.freeHandle(f.id)
	return x
}

// Restore puts a dropped collection back. x must not be used again. If all that was done since
// to collections of the same stripe has been undone, last first, the collection gets the
// reference it had, and handles from before the drop are valid again.
func (d *Directory) Restore(h uint64, x Dropped) Collection {
	f := Collection{fs: &d.grown(h).collections}
	f.fs.makeArena()
	f.id = f.fs.arena.newHandle()
	if x.big != nil {
		f.fs.setBig(f.id, x.big)
		f.fs.bytes.Add(int64(x.big.arena.held))
	} else {
		copy(f.fs.arena.alloc(f.id, len(x.block)), x.block)
	}
	d.Insert(h, Slot{x.typ, Loc(f.id)})
	return f
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
	}
	return x.big.members.n
}

// Each calls fn for the location of the meta records, if there is one, and of every
// element, until fn returns false.
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
