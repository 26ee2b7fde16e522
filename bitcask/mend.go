package bitcask

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/keydir"
)

// fixCounts opens the new store, makes every collection agree with itself again, and
// tells which losses show.
func (v *salvager) fixCounts(out string, o Options) error {
	o.ReadOnly, o.Sync, o.Loading = false, SyncNone, nil
	s, err := Open(out, &o)
	if err != nil {
		return err
	}
	for ns, sp := range s.spaces.now.Load().names { // also those that hold nothing but such deadlines
		if sp == nil {
			continue
		}
		for stripe := range keydir.Stripes {
			n, err := s.fixStripe(ns, stripe)
			if err != nil {
				return errors.Join(err, s.Close())
			}
			v.result.Mended += n
		}
	}
	return errors.Join(v.report(s), s.Close())
}

// fixStripe mends the collections of one stripe that Check would complain
// about, and takes away deadlines of keys and fields that are lost: the next one
// of that name would inherit them.
func (s *Store) fixStripe(ns, stripe int) (mended int, err error) {
	t, err := s.BeginStripe(true, stripe)
	if err != nil {
		return 0, err
	}
	sp := s.spaces.of(ns)
	var broken []keydir.Collection
	var orphans []string                     // keys with deadlines, at first
	var fields []struct{ key, field string } // with deadlines, that are not there
	sp.dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
		switch slot.Type {
		case keydir.String:
		case keydir.Deadline:
			sg, missing := s.segmentOf(slot.Loc)
			if err = missing; err == nil {
				err = sg.Identify(slot.Loc, func(rec *format.Record) { orphans = append(orphans, string(rec.Key)) })
			}
			return err == nil
		case keydir.FieldDeadlines:
			coll := sp.dir.CollectionOf(h, slot)
			key := coll.Key()
			lostFields(sp.dir, h, key, coll, func(field []byte, _ keydir.Loc) {
				fields = append(fields, struct{ key, field string }{key, string(field)})
			})
		default:
			c := &checker{s: s, report: func(Finding) {}}
			coll := sp.dir.CollectionOf(h, slot)
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

// fixCount writes the count of a collection anew; a list with holes is closed up.
func (t *Tx) fixCount(ns int, sp *space, coll keydir.Collection) error {
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

// closeUp moves the elements behind the holes of a list to the front.
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

// report lists the losses that nothing newer has made good.
func (v *salvager) report(s *Store) error {
	for _, l := range v.unnamed {
		v.result.Lost = append(v.result.Lost, *l)
	}
	for _, list := range v.named {
		for _, x := range list {
			ns, ok := s.NamespaceOf(x.Namespace)
			if !ok && x.typ != keydir.None {
				v.result.Replaced++ // its namespace has been flushed
				continue
			}
			stale, err := s.shows(ns, &x)
			if err != nil {
				return err
			}
			if x.kind == KindFieldDeadlineTombstone && !stale {
				v.result.Replaced++ // the deadline is gone all the same
				continue
			}
			x.Lost.Stale = stale
			v.result.Lost = append(v.result.Lost, x.Lost)
		}
	}
	slices.SortFunc(v.result.Lost, func(a, b Lost) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	})
	return nil
}

// shows reports whether the new store holds something that the lost record
// would have replaced or taken away.
func (s *Store) shows(ns int, x *loss) (bool, error) {
	if x.kind == KindSystem {
		return s.System(x.Key) != nil, nil
	}
	if x.kind == KindMeta || x.kind == KindNamespaces {
		return x.kind == KindNamespaces, nil // counts have been mended
	}
	t, err := s.Begin(false, x.Key)
	if err != nil {
		return false, err
	}
	defer t.End()
	if x.typ == keydir.FieldDeadlines {
		coll, err := t.FieldDeadlines(ns, x.Key)
		if err != nil || !coll.Valid() {
			return false, err
		}
		_, _, ok := coll.Score(x.Element)
		return ok, nil
	}
	slot, coll, err := t.Find(ns, x.Key)
	if err != nil || slot.Type == keydir.None {
		return false, err
	}
	if x.kind != KindElement && x.kind != KindElementTombstone {
		return true, nil
	}
	if !coll.Valid() || coll.Type() != x.typ {
		return false, nil
	}
	ok := false
	switch x.typ {
	case keydir.ZSet:
		_, _, ok = coll.Score(x.Element)
	case keydir.List, keydir.Chunks:
		if index, valid := format.ParseIndex([]byte(x.Element)); valid {
			_, ok = coll.LocAt(index)
		}
	default:
		_, ok = coll.Get(x.Element)
	}
	return ok, nil
}
