package locate

import (
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// Move makes the keydir point to a record's new place if, and only if, it
// points to the old one. It is the one place where a location moves: at commit
// from pending to real, at the end of a merge from old to new.
func Move(dir *keydir.Directory, h uint64, id *format.Identity, old, new keydir.Loc) bool {
	switch id.Kind {
	case format.KindString, format.KindDeadline:
		return dir.Replace(h, keydir.Slot{Type: id.Type, Loc: old}, keydir.Slot{Type: id.Type, Loc: new})
	}
	coll, ok := CollectionOf(dir, h, id)
	if !ok {
		return false
	}
	if id.Kind == format.KindMeta {
		if coll.Meta() != old {
			return false
		}
		coll.SetMeta(new)
		return true
	}
	return moveElem(coll, id, old, new)
}

// CollectionOf finds the collection that holds the location of a record.
func CollectionOf(dir *keydir.Directory, h uint64, id *format.Identity) (keydir.Collection, bool) {
	switch {
	case !id.Kind.InCollection():
		return keydir.Collection{}, false
	case id.Type == keydir.FieldDeadlines || id.Type == keydir.StreamGroups:
		return dir.FindAlongside(h, format.Text(id.Key), id.Type)
	}
	coll, ok := dir.FindCollection(h, format.Text(id.Key))
	return coll, ok && coll.Type() == id.Type
}

func moveElem(coll keydir.Collection, id *format.Identity, old, new keydir.Loc) bool {
	switch id.Type {
	case keydir.List, keydir.Chunks:
		index, ok := format.ParseIndex(id.Elem)
		return ok && coll.MoveAt(index, old, new)
	case keydir.Stream:
		entry, ok := format.ParseEntryName(id.Elem)
		return ok && coll.MoveEntry(entry, old, new)
	}
	return coll.Move(format.Text(id.Elem), old, new)
}

// PointsTo reports whether the keydir points to the record at loc.
func PointsTo(dir *keydir.Directory, h uint64, id *format.Identity, loc keydir.Loc) bool {
	switch id.Kind {
	case format.KindString, format.KindDeadline:
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
	if id.Kind == format.KindMeta {
		return coll.Meta()
	}
	switch id.Type {
	case keydir.ZSet, keydir.FieldDeadlines, keydir.StreamGroups:
		_, at, ok = coll.Score(format.Text(id.Elem))
	case keydir.List, keydir.Chunks:
		var index int64
		if index, ok = format.ParseIndex(id.Elem); ok {
			at, ok = coll.LocAt(index)
		}
	case keydir.Stream:
		var entry keydir.StreamID
		if entry, ok = format.ParseEntryName(id.Elem); ok {
			at, ok = coll.Entry(entry)
		}
	default:
		at, ok = coll.Get(format.Text(id.Elem))
	}
	if !ok {
		return 0
	}
	return at
}
