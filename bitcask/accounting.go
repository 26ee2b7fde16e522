package bitcask

import (
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/replay"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// Live bytes are counted by location: a record's bytes are live while the
// keydir points to it. The rest of a segment, tombstones and headers included,
// is dead. Locations carry a size class, so the counts are estimates, up to an
// eighth too high for a record.

func (s *Store) addLive(sg *segment.Segment, loc keydir.Loc) { sg.LiveBytes.Add(int64(loc.Size())) }

// addDead counts the bytes at loc as dead. A location that leads nowhere (none, pending, or of a
// segment since merged away) counts nothing.
func (s *Store) addDead(loc keydir.Loc) {
	if loc == 0 {
		return
	}
	if sg := s.segments.Load().Find(loc.Segment()); sg != nil {
		sg.LiveBytes.Add(-int64(loc.Size()))
	}
}

// deferDead counts a dropped collection as dead, at once or later.
func (s *Store) deferDead(d keydir.Dropped) {
	if d.Len() <= replay.SmallDrop {
		s.countDropped(d)
		return
	}
	s.droppedMu.Lock()
	defer s.droppedMu.Unlock()
	s.droppedCollections = append(s.droppedCollections, d)
}

func (s *Store) countDropped(d keydir.Dropped) {
	d.Each(func(loc keydir.Loc) bool {
		s.addDead(loc)
		return true
	})
}

// DrainDropped updates the counts of live bytes for collections that were dropped whole, and
// releases their memory. The owner of a store with collections calls it at intervals; Stats and
// merge planning do, too.
func (s *Store) DrainDropped() {
	for {
		s.droppedMu.Lock()
		spaces := s.droppedSpaces
		s.droppedSpaces = nil
		n := len(s.droppedCollections)
		if n == 0 && len(spaces) == 0 {
			s.droppedMu.Unlock()
			return
		}
		if len(spaces) > 0 {
			s.droppedMu.Unlock()
			for _, sp := range spaces {
				s.countSpaceDead(sp)
			}
			continue
		}
		d := s.droppedCollections[n-1]
		s.droppedCollections[n-1] = keydir.Dropped{}
		s.droppedCollections = s.droppedCollections[:n-1]
		s.droppedMu.Unlock()
		s.countDropped(d)
	}
}

// deferSpaceDead leaves a dropped space to DrainDropped.
func (s *Store) deferSpaceDead(sp *namespace.Space) {
	s.droppedMu.Lock()
	defer s.droppedMu.Unlock()
	s.droppedSpaces = append(s.droppedSpaces, sp)
}

// countSpaceDead counts everything in a dropped space as dead.
func (s *Store) countSpaceDead(sp *namespace.Space) {
	for stripe := range keydir.Stripes {
		sp.Dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
			switch slot.Type {
			case keydir.String, keydir.Deadline:
				s.addDead(slot.Loc)
			default:
				coll := sp.Dir.CollectionOf(h, slot)
				s.addDead(coll.Meta())
				coll.Each(func(_ []byte, loc keydir.Loc) bool {
					s.addDead(loc)
					return true
				})
			}
			return true
		})
	}
}
