package repair

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/locate"
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
			if x.row.Removes && x.typ == keydir.FieldDeadlines && !stale {
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
	switch {
	case x.row.Home == format.HomeSystem:
		return s.System(x.Key) != nil, nil
	case x.row.Home == format.HomeNamespaces:
		return true, nil
	case x.row.Home == format.HomeMeta && x.row.Hides == format.HidesNothing:
		return false, nil // counts have been corrected
	}
	t, err := s.Begin(false, x.Key)
	if err != nil {
		return false, err
	}
	defer t.End()
	slot, coll, err := t.Find(ns, x.Key)
	there := slot.Type != keydir.None
	if err == nil && x.row.Home == format.HomeAlongside {
		find := t.FieldDeadlines
		if x.typ == keydir.StreamGroups {
			find = t.StreamGroups
		}
		coll, err = find(ns, x.Key)
		there = coll.Valid()
	}
	if err != nil || !there {
		return false, err
	}
	switch x.row.Home {
	case format.HomeMeta: // entries that it had trimmed may be back
		return coll.Valid() && coll.Type() == x.typ, nil
	case format.HomeElement, format.HomeAlongside:
		if x.row.Hides == format.HidesGroup && keydir.IsGroupsRange(x.Element) {
			return true, nil
		}
		if x.row.Hides == format.HidesRange {
			if !coll.Valid() || coll.Type() != x.typ {
				return false, nil
			}
			from, to, ok := format.ParseRange([]byte(x.Element))
			some := false
			coll.EachPlace(func(at keydir.ListPlace, _ keydir.Loc) bool {
				some = ok && !at.Less(from) && !to.Less(at)
				return !some && !to.Less(at)
			})
			return some, nil
		}
		p, ok := x.row.PlaceOf([]byte(x.Element))
		return ok && coll.Valid() && coll.Type() == x.typ && locate.In(coll, &p) != 0, nil
	}
	return true, nil
}
