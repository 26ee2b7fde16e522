package bitcask

import (
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// FixCounts rewrites the count of every collection that Check would report, closes up lists with holes, and removes
// deadlines of keys and fields that do not exist. It returns the number of changes. It is for a store that a repair has
// made, and that nothing else uses yet.
func (s *Store) FixCounts() (fixed int, err error) {
	for ns, sp := range s.spaces.Now.Load().Names { // also those that hold nothing but such deadlines
		if sp == nil {
			continue
		}
		for stripe := range keydir.Stripes {
			n, err := s.fixStripe(ns, stripe)
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
func (s *Store) fixStripe(ns, stripe int) (mended int, err error) {
	t, err := s.BeginStripe(true, stripe)
	if err != nil {
		return 0, err
	}
	sp := s.spaces.Of(ns)
	var broken []keydir.Collection
	var orphans []string                     // keys with deadlines, at first
	var fields []struct{ key, field string } // with deadlines, that are not there
	sp.Dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
		switch slot.Type {
		case keydir.String:
		case keydir.Deadline:
			sg, missing := s.segmentOf(slot.Loc)
			if err = missing; err == nil {
				err = sg.Identify(slot.Loc, func(rec *format.Record) { orphans = append(orphans, string(rec.Key)) })
			}
			return err == nil
		case keydir.FieldDeadlines:
			coll := sp.Dir.CollectionOf(h, slot)
			key := coll.Key()
			lostFields(sp.Dir, h, key, coll, func(field []byte, _ keydir.Loc) {
				fields = append(fields, struct{ key, field string }{key, string(field)})
			})
		default:
			c := &checker{s: s, report: func(Finding) {}}
			coll := sp.Dir.CollectionOf(h, slot)
			if c.collection(sp, coll); c.result.Findings > 0 {
				broken = append(broken, coll)
			}
		}
		return true
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
	for _, coll := range broken {
		if err == nil {
			err = t.fixCount(ns, sp, coll)
			mended++
		}
	}
	if err != nil {
		t.End()
		return 0, err
	}
	return mended, s.finish(t)
}

// fixCount rewrites the count of a collection; a list with holes is closed up.
func (t *Tx) fixCount(ns int, sp *namespace.Space, coll keydir.Collection) error {
	key, typ := coll.Key(), coll.Type()
	if typ == keydir.List {
		if head, tail := coll.Bounds(); int64(coll.Len()) != tail-head+1 {
			return t.closeUp(ns, key, coll)
		}
	}
	h, err := t.hash(key)
	if err != nil {
		return err
	}
	t.touch(sp, h, key, typ, coll)
	t.s.addDead(coll.Meta())
	coll.SetMeta(0) // so that Commit writes it, whatever the count was
	return nil
}

// closeUp moves the elements after the holes of a list to the front.
func (t *Tx) closeUp(ns int, key string, coll keydir.Collection) error {
	head, tail := coll.Bounds()
	next := head
	for i := head; i <= tail; i++ {
		loc, ok := coll.LocAt(i)
		if !ok {
			continue
		}
		if next < i {
			value, err := t.Value(nil, ns, key, format.IndexName(i), keydir.List, loc)
			if err != nil {
				return err
			}
			if err := t.PutIndex(ns, key, coll, next, value); err != nil {
				return err
			}
			if _, err := t.DeleteIndex(ns, key, coll, i); err != nil {
				return err
			}
		}
		next++
	}
	return nil
}
