package bitcask

import (
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// segmentSet is an immutable list of open segments, found by id.
type segmentSet struct {
	base uint32
	byID []*segment.Segment // byID[id-base]; nil where there is none
}

func (ss *segmentSet) find(id uint32) *segment.Segment {
	if i := id - ss.base; id >= ss.base && int(i) < len(ss.byID) {
		return ss.byID[i]
	}
	return nil
}

// all lists the segments in order of id.
func (ss *segmentSet) all() []*segment.Segment {
	list := make([]*segment.Segment, 0, len(ss.byID))
	for _, sg := range ss.byID {
		if sg != nil {
			list = append(list, sg)
		}
	}
	return list
}

// with returns a copy that has add and lacks drop.
func (ss *segmentSet) with(add []*segment.Segment, drop []*segment.Segment) *segmentSet {
	gone := make(map[uint32]bool, len(drop))
	for _, sg := range drop {
		gone[sg.ID] = true
	}
	var list []*segment.Segment
	for _, sg := range ss.all() {
		if !gone[sg.ID] {
			list = append(list, sg)
		}
	}
	return newSegmentSet(append(list, add...))
}

func newSegmentSet(list []*segment.Segment) *segmentSet {
	ss := new(segmentSet)
	if len(list) == 0 {
		return ss
	}
	lo, hi := list[0].ID, list[0].ID
	for _, sg := range list {
		lo, hi = min(lo, sg.ID), max(hi, sg.ID)
	}
	ss.base, ss.byID = lo, make([]*segment.Segment, hi-lo+1)
	for _, sg := range list {
		ss.byID[sg.ID-lo] = sg
	}
	return ss
}

// segmentOf finds the open segment of a location.
func (s *Store) segmentOf(loc keydir.Loc) (*segment.Segment, error) {
	sg := s.segments.Load().find(loc.Segment())
	if sg == nil {
		return nil, fmt.Errorf("%s: %w", format.DataName(loc.Segment()), ErrMissing)
	}
	return sg, nil
}
