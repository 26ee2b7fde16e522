package locate

import (
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// Move makes the keydir point to a record's new place if, and only if, it
// points to the old one. It is the one place where a location moves: at commit
// from pending to real, at the end of a merge from old to new.
func Move(dir *keydir.Directory, h uint64, id *format.Identity, old, new keydir.Loc) bool {
	row := id.Row()
	if !row.Located() {
		return false
	}
	if row.Home == format.HomeSlot {
		return dir.Replace(h, keydir.Slot{Type: id.Type, Loc: old}, keydir.Slot{Type: id.Type, Loc: new})
	}
	coll, ok := CollectionOf(dir, h, id)
	return ok && MoveIn(coll, id, old, new)
}

// MoveIn is Move of a record of a collection, for a caller that has found it.
func MoveIn(coll keydir.Collection, id *format.Identity, old, new keydir.Loc) bool {
	row := id.Row()
	if row.Home == format.HomeMeta {
		if coll.Meta() != old {
			return false
		}
		coll.SetMeta(new)
		return true
	}
	p, ok := row.PlaceOf(id.Elem)
	if !ok {
		return false
	}
	switch p.By {
	case format.PartIndex:
		return coll.MovePlace(p.List, old, new)
	case format.PartChunk:
		return coll.MoveAt(p.Index, old, new)
	case format.PartEntry:
		return coll.MoveEntry(p.Entry, old, new)
	}
	return coll.Move(p.Name, old, new)
}

// CollectionOf finds the collection that holds the location of a record.
func CollectionOf(dir *keydir.Directory, h uint64, id *format.Identity) (keydir.Collection, bool) {
	row := id.Row()
	switch {
	case !row.InCollection():
		return keydir.Collection{}, false
	case row.Home == format.HomeAlongside:
		return dir.FindAlongside(h, format.Text(id.Key), id.Type)
	}
	coll, ok := dir.FindCollection(h, format.Text(id.Key))
	return coll, ok && coll.Type() == id.Type
}

// PointsTo reports whether the keydir points to the record at loc.
func PointsTo(dir *keydir.Directory, h uint64, id *format.Identity, loc keydir.Loc) bool {
	if row := id.Row(); row.Home == format.HomeSlot && row.Located() {
		want := keydir.Slot{Type: id.Type, Loc: loc}
		for i := 0; ; i++ {
			slot, ok := dir.Find(h, i)
			if !ok || slot == want {
				return ok
			}
		}
	}
	at := Find(dir, h, id)
	return at == loc && at != 0
}

// Find is where the keydir has a record of a collection; 0 if nowhere.
func Find(dir *keydir.Directory, h uint64, id *format.Identity) (at keydir.Loc) {
	coll, ok := CollectionOf(dir, h, id)
	if !ok {
		return 0
	}
	row := id.Row()
	if row.Home == format.HomeMeta {
		return coll.Meta()
	}
	p, ok := row.PlaceOf(id.Elem)
	if !ok {
		return 0
	}
	return In(coll, &p)
}

// In is where a collection has the element of a place; 0: there is none.
func In(coll keydir.Collection, p *format.Place) (at keydir.Loc) {
	switch p.By {
	case format.PartIndex:
		at, _ = coll.LocAtPlace(p.List)
	case format.PartChunk:
		at, _ = coll.LocAt(p.Index)
	case format.PartEntry:
		at, _ = coll.Entry(p.Entry)
	case format.PartScored, format.PartGroups:
		_, at, _ = coll.Score(p.Name)
	default:
		at, _ = coll.Get(p.Name)
	}
	return at
}

// Put puts an element at its place, and returns the location that it had.
func Put(coll keydir.Collection, f *format.Fact, loc keydir.Loc) (old keydir.Loc) {
	switch p := &f.Place; p.By {
	case format.PartIndex:
		old, _ = coll.PutPlace(p.List, loc)
	case format.PartChunk:
		old, _ = coll.PutAt(p.Index, loc)
	case format.PartEntry:
		old, _ = coll.PutEntry(p.Entry, loc)
	case format.PartScored, format.PartGroups:
		_, old, _ = coll.PutScored(p.Name, f.Score, loc)
	default:
		old, _ = coll.Put(p.Name, loc)
	}
	return old
}

// Remove removes the element of a place, and returns the location that it had.
func Remove(coll keydir.Collection, p *format.Place) (old keydir.Loc) {
	switch p.By {
	case format.PartIndex:
		old, _ = coll.DeletePlace(p.List)
	case format.PartChunk:
		old, _ = coll.DeleteAt(p.Index)
	case format.PartEntry:
		old, _ = coll.DeleteEntry(p.Entry)
	case format.PartScored, format.PartGroups:
		_, old, _ = coll.DeleteScored(p.Name)
	default:
		old, _ = coll.Delete(p.Name)
	}
	return old
}

// Each calls fn for each element of a collection, in its order, with the place and the score that its record has.
func Each(coll keydir.Collection, fn func(p *format.Place, loc keydir.Loc) (more bool)) {
	row := ElementsOf(coll.Type())
	p := format.Place{By: row.Part}
	switch row.Part {
	case format.PartIndex:
		coll.EachPlace(func(at keydir.ListPlace, loc keydir.Loc) bool {
			p.List = at
			return fn(&p, loc)
		})
	case format.PartChunk:
		head, tail := coll.Bounds()
		for p.Index = head; p.Index <= tail; p.Index++ {
			if loc, ok := coll.LocAt(p.Index); ok && !fn(&p, loc) {
				return
			}
		}
	case format.PartEntry:
		coll.AscendEntries(keydir.StreamID{}, func(id keydir.StreamID, loc keydir.Loc) bool {
			p.Entry = id
			return fn(&p, loc)
		})
	default:
		coll.Each(func(elem []byte, loc keydir.Loc) bool {
			p.Name = format.Text(elem)
			return fn(&p, loc)
		})
	}
}

// ElementsOf is the row of the elements of collections of a type.
func ElementsOf(t keydir.Type) *format.Row {
	if t.Alongside() {
		return format.LocatedBy(format.HomeAlongside, t)
	}
	return format.LocatedBy(format.HomeElement, t)
}
