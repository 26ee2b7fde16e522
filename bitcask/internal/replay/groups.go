package replay

import (
	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// groups applies an entry about a group of a stream.
func (a *Applier) groups(sp *namespace.Space, h uint64, sg *segment.Segment, e *format.Entry, loc keydir.Loc) error {
	score, ok := keydir.GroupsScore(e.Elem, e.Inline)
	if !ok {
		return &failure.CorruptError{File: sg.Name, Offset: int64(e.At), Reason: format.BadGroups}
	}
	a.putAlongside(sp, h, keydir.StreamGroups, e, score, loc)
	return nil
}

// removeGroups applies a tombstone of one of them, or of all that a group or a consumer has.
func (a *Applier) removeGroups(sp *namespace.Space, h uint64, sg *segment.Segment, e *format.Entry) error {
	ranges, ok := keydir.GroupsRangeOf(e.Elem)
	if !ok {
		return &failure.CorruptError{File: sg.Name, Offset: int64(e.At), Reason: format.BadGroups}
	}
	coll, ok := sp.Dir.FindAlongside(h, format.Text(e.Key), keydir.StreamGroups)
	switch {
	case !ok:
	case ranges != nil:
		a.removeScored(sp, h, coll, coll.Within(ranges)...)
	default:
		a.removeScored(sp, h, coll, format.Text(e.Elem))
	}
	return nil
}
