package bitcask

import "github.com/stavedb/stave/keydir"

// Live bytes are counted by location: a record's bytes are live while the
// keydir points to it. The rest of a segment, tombstones and headers included,
// is dead. Locations carry a size class, so the counts are estimates, up to an
// eighth too high for a record.

func (s *Store) live(sg *segment, loc keydir.Loc) { sg.liveBytes.Add(int64(loc.Size())) }

// unlive counts the bytes at loc as dead. A location that leads nowhere (none,
// pending, or of a segment merged away meanwhile) counts nothing.
func (s *Store) unlive(loc keydir.Loc) {
	if loc == 0 {
		return
	}
	if sg := s.segments.Load().find(loc.Segment()); sg != nil {
		sg.liveBytes.Add(-int64(loc.Size()))
	}
}

// smallDrop is how many locations of a dropped collection are counted at once;
// larger ones are left to DrainDropped so that deleting them stays O(1).
const smallDrop = 64

// leave counts a dropped collection as dead, at once or later.
func (s *Store) leave(d keydir.Dropped) {
	if d.Len() <= smallDrop {
		s.countDropped(d)
		return
	}
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	s.left = append(s.left, d)
}

func (s *Store) countDropped(d keydir.Dropped) {
	d.Each(func(loc keydir.Loc) bool {
		s.unlive(loc)
		return true
	})
}

// DrainDropped brings the counts of live bytes up to date with what was dropped
// whole, and lets go of its memory. The owner of a store with collections
// calls it now and then; Stats and merge planning do.
func (s *Store) DrainDropped() {
	for {
		s.leftMu.Lock()
		spaces := s.leftSpaces
		s.leftSpaces = nil
		n := len(s.left)
		if n == 0 && len(spaces) == 0 {
			s.leftMu.Unlock()
			return
		}
		if len(spaces) > 0 {
			s.leftMu.Unlock()
			for _, sp := range spaces {
				s.forgetSpace(sp)
			}
			continue
		}
		d := s.left[n-1]
		s.left[n-1] = keydir.Dropped{}
		s.left = s.left[:n-1]
		s.leftMu.Unlock()
		s.countDropped(d)
	}
}

// leaveSpace leaves a dropped space to DrainDropped.
func (s *Store) leaveSpace(sp *space) {
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	s.leftSpaces = append(s.leftSpaces, sp)
}

// forgetSpace counts everything in a dropped space as dead.
func (s *Store) forgetSpace(sp *space) {
	for stripe := range keydir.Stripes {
		sp.dir.Scan(stripe, 0, func(h uint64, slot keydir.Slot) bool {
			switch slot.Type {
			case keydir.String, keydir.Deadline:
				s.unlive(slot.Loc)
			default:
				coll := sp.dir.CollectionOf(h, slot)
				s.unlive(coll.Meta())
				coll.Each(func(_ []byte, loc keydir.Loc) bool {
					s.unlive(loc)
					return true
				})
			}
			return true
		})
	}
}
