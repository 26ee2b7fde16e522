package bitcask

import (
	"context"

	"github.com/stavedb/stave/bitcask/internal/check"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// FixCounts rewrites the count of every collection that Check would report, has the manifest announce holes of lists, and
// removes deadlines of keys and fields that do not exist. It returns the number of changes. It is for a store that a repair has
// made, and that nothing else uses yet. When ctx ends, its error is returned; what has been corrected by then stays so.
func (s *Store) FixCounts(ctx context.Context) (fixed int, err error) {
	for ns, sp := range s.spaces.Now.Load().Names { // also those that hold nothing but such deadlines
		if sp == nil {
			continue
		}
		for stripe := range keydir.Stripes {
			n, err := s.fixStripe(ctx, ns, stripe)
			if err != nil {
				return fixed, err
			}
			fixed += n
		}
	}
	return fixed, nil
}

// fixStripe corrects the collections of one stripe that Check would report, and removes deadlines
// of keys and fields that are lost: the next key or field of that name would inherit them.
func (s *Store) fixStripe(ctx context.Context, ns, stripe int) (mended int, err error) {
	t, err := s.BeginStripe(true, stripe)
	if err != nil {
		return 0, err
	}
	defer t.End()
	sp, src := s.spaces.Of(ns), s.checkEnvironment()
	var broken []keydir.Collection
	var orphans []string                     // keys with deadlines, at first
	var fields []struct{ key, field string } // with deadlines, that are not there
	var groups []lostGroup                   // of streams that are not there
	sp.Dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
		switch slot.Type {
		case keydir.String:
		case keydir.Deadline:
			sg, missing := s.segmentOf(slot.Loc)
			if err = missing; err == nil {
				err = sg.Identify(slot.Loc, func(rec format.Record) { orphans = append(orphans, string(rec.Key)) })
			}
			return err == nil
		case keydir.FieldDeadlines:
			coll := sp.Dir.CollectionOf(h, slot)
			key := coll.Key()
			check.LostFields(sp.Dir, h, key, coll, func(field []byte, _ keydir.Loc) {
				fields = append(fields, struct{ key, field string }{key, string(field)})
			})
		case keydir.StreamGroups:
			groups = lostGroups(groups, sp.Dir, h, sp.Dir.CollectionOf(h, slot))
		default:
			coll, wrong := sp.Dir.CollectionOf(h, slot), false
			if wrong, err = s.miscounted(ctx, src, sp, coll); wrong {
				broken = append(broken, coll)
			}
		}
		return err == nil
	})
	for _, key := range orphans {
		var slot keydir.Slot
		if err == nil {
			slot, _, err = t.Find(ns, key)
		}
		if err == nil && slot.Type == keydir.None {
			_, err = t.ClearDeadline(ns, key)
			mended++
		}
	}
	for _, f := range fields {
		if err == nil {
			_, err = t.ClearFieldDeadline(ns, f.key, f.field)
			mended++
		}
	}
	for _, g := range groups {
		if err == nil {
			_, err = t.DeleteGroups(ns, g.key, keydir.Collection{}, g.elem)
			mended++
		}
	}
	for _, coll := range broken {
		if err == nil {
			err = t.fixCount(ns, sp, coll)
			mended++
		}
	}
	if err != nil {
		return 0, err
	}
	return mended, t.finish()
}

// miscounted is check.Miscounted, and has the manifest announce the holes of a list.
func (s *Store) miscounted(ctx context.Context, src *check.Environment, sp *namespace.Space, coll keydir.Collection) (bool, error) {
	if coll.Type() == keydir.List && !coll.Regular() {
		if err := s.man.need(manifest.FeaturePlaces); err != nil {
			return false, err
		}
	}
	return check.Miscounted(ctx, src, sp, coll)
}

// fixCount rewrites the count of a collection.
func (t *Tx) fixCount(ns int, sp *namespace.Space, coll keydir.Collection) error {
	key, typ := coll.Key(), coll.Type()
	if typ == keydir.Stream {
		return t.fixStream(ns, key, coll)
	}
	h, err := t.hash(key)
	if err != nil {
		return err
	}
	t.touch(sp, h, key, typ, coll)
	t.s.dead.add(coll.Meta())
	coll.SetMeta(0) // so that Commit writes it, whatever the count was
	return nil
}

// fixStream writes the meta record of a stream again. What one that cannot be read said is made up from the entries.
func (t *Tx) fixStream(ns int, key string, coll keydir.Collection) error {
	m, err := t.storedMeta(ns, key, coll)
	if err != nil {
		t.s.dead.add(coll.Meta())
		coll.SetMeta(0)
		m = keydir.StreamMeta{}
	}
	count := uint64(coll.Len())
	if last, ok := coll.LastEntry(); ok && m.Last.Less(last) {
		m.Added += uint64(coll.CountEntries(m.Last))
		m.Last = last
	}
	m.Added = max(m.Added, count)
	return t.PutStreamMeta(ns, key, coll, m)
}

// lostGroup is an element of the groups of a stream that is not there.
type lostGroup struct{ key, elem string }

// lostGroups appends those of one collection.
func lostGroups(list []lostGroup, dir *keydir.Directory, h uint64, coll keydir.Collection) []lostGroup {
	key := coll.Key()
	if stream, ok := dir.FindCollection(h, key); ok && stream.Type() == keydir.Stream {
		return list
	}
	coll.Each(func(elem []byte, _ keydir.Loc) bool {
		list = append(list, lostGroup{key, string(elem)})
		return true
	})
	return list
}
