package keydir

import "unsafe"

// What accounting takes a big family and a list page's place in the tree for.
const (
	bigBytes      = int(unsafe.Sizeof(big{})) + 256
	listPageBytes = int(unsafe.Sizeof(listPage{})) * 3 / 2
)

// NewFamily makes an empty family and inserts its slot. It does not look for one with
// that key.
func (d *Directory) NewFamily(h uint64, t Type, key string) Family {
	if !t.family() {
		panic("BUG: keydir: family of type " + t.String())
	}
	f := Family{fs: &d.grown(h).families}
	f.id = f.fs.create(t, key)
	d.Insert(h, Slot{t, Loc(f.id)})
	return f
}

// FamilyOf returns the family of a slot that leads to one.
func (d *Directory) FamilyOf(h uint64, s Slot) Family {
	return Family{fs: &d.at(h).families, id: uint32(s.Loc)}
}

// FindFamily returns the family of a key that holds a collection.
func (d *Directory) FindFamily(h uint64, key string) (Family, bool) {
	return d.findFamily(h, key, collections)
}

// FindFieldDeadlines returns the deadlines of the fields of a hash, if any field has one.
func (d *Directory) FindFieldDeadlines(h uint64, key string) (Family, bool) {
	if d.expiring.Load() == 0 {
		return Family{}, false
	}
	return d.findFamily(h, key, setOf(FieldDeadlines))
}

func (d *Directory) findFamily(h uint64, key string, types typeSet) (Family, bool) {
	for i := 0; ; i++ {
		s, ok := d.Find(h, i)
		if !ok {
			return Family{}, false
		}
		if !types.has(s.Type) {
			continue
		}
		if f := d.FamilyOf(h, s); f.hasKey(key) {
			return f, true
		}
	}
}

// Dropped is a family that is no longer in the directory. It needs no lock: its memory
// is its own.
type Dropped struct {
	typ   Type
	id    uint32
	block small // of a small family
	big   *big
	hash  *hasher
}

// DropFamily takes a family and its slot out of the directory, in O(1). Handles of the
// family are no longer valid.
func (d *Directory) DropFamily(h uint64, f Family) Dropped {
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

// Restore puts a dropped family back. x must not be used again. If all that was done since
// to families of the same stripe has been undone, last first, the family gets the
// reference it had, and handles from before the drop are valid again.
func (d *Directory) Restore(h uint64, x Dropped) Family {
	f := Family{fs: &d.grown(h).families}
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

// Type returns the type the family had.
func (x Dropped) Type() Type { return x.typ }

// Len returns the number of elements the family had.
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
