package repair

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/keydir"
)

// fixCounts opens the new store, makes every collection consistent again, and decides which losses
// show.
func (v *salvager) fixCounts(out string, o bitcask.Options) error {
	o.ReadOnly, o.Sync, o.Loading = false, bitcask.SyncNone, nil
	seam.Of(&o).Until = v.ctx
	s, err := bitcask.Open(out, &o)
	if err != nil {
		return err
	}
	n, err := s.FixCounts(v.ctx)
	v.result.Mended += n
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return errors.Join(v.report(s), s.Close())
}

// report lists the losses that nothing newer has made good.
func (v *salvager) report(s *bitcask.Store) error {
	v.boundRest()
	for _, h := range v.unnamed {
		v.result.Lost = append(v.result.Lost, h.Lost)
	}
	for _, list := range v.named {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		for _, x := range list {
			ns, ok := s.NamespaceOf(x.Namespace)
			if !ok && x.typ != keydir.None {
				v.result.Replaced++ // its namespace has been flushed
				continue
			}
			stale, err := shows(s, ns, &x)
			if err != nil {
				return err
			}
			if x.kind == format.KindFieldDeadlineTombstone && !stale {
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

// shows reports whether the new store holds something that the lost record would have replaced or
// removed.
func shows(s *bitcask.Store, ns int, x *loss) (bool, error) {
	if x.kind == format.KindSystem {
		return s.System(x.Key) != nil, nil
	}
	if x.kind == format.KindMeta && x.typ != keydir.Stream || x.kind == format.KindNamespaces {
		return x.kind == format.KindNamespaces, nil // counts have been corrected
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
	if x.typ == keydir.StreamGroups {
		coll, err := t.StreamGroups(ns, x.Key)
		if err != nil || !coll.Valid() {
			return false, err
		}
		_, _, ok := coll.Score(x.Element)
		return ok || keydir.IsGroupsRange(x.Element), nil
	}
	slot, coll, err := t.Find(ns, x.Key)
	if err != nil || slot.Type == keydir.None {
		return false, err
	}
	if x.kind == format.KindMeta { // entries that it had trimmed may be back
		return coll.Valid() && coll.Type() == keydir.Stream, nil
	}
	if x.kind != format.KindElement && x.kind != format.KindElementTombstone {
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
	case keydir.Stream:
		if id, valid := format.ParseEntryName([]byte(x.Element)); valid {
			_, ok = coll.Entry(id)
		}
	default:
		_, ok = coll.Get(x.Element)
	}
	return ok, nil
}
