package bitcask

import (
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// Mark returns the mark of all that has been written, for a file that describes it. A store that is open for reading
// has none to give, nor has one that finds its directory, or LOCK, gone: another process may write such a file by now.
func (s *Store) Mark() (Mark, error) {
	if s.opts.ReadOnly {
		return Mark{}, ErrReadOnly
	}
	if err := s.writing.prepare(); err != nil { // which gives the opening its id
		return Mark{}, err
	}
	if err := s.guard.check(); err != nil {
		return Mark{}, err
	}
	m, err := s.log.Mark()
	m.Opening = s.man.opening
	return m, err
}

// Reached reports whether the log has been in the state of a mark. It is to be asked before the first write.
func (s *Store) Reached(m Mark) bool {
	ss := s.segments.Load()
	if ss.Find(m.Segment) != nil && !indexfile.PlaceOf(m).Fits(ss, func(is indexfile.Segment, err error) error {
		if s.opts.ReadDamaged && s.man.vouches(is) {
			return nil
		}
		return err
	}) {
		return false
	}
	return s.man.reached(m, s.log.Next()) // a merge may have taken the segment
}

// gave reports whether the log, whose next record will have number next, has given out the number of a mark in the
// mark's opening.
func gave(man *manifest.Manifest, m Mark, next uint64) bool {
	return m.Sequence <= max(next-1, man.MaxSeq) && man.Gave(m.Opening, m.Sequence)
}

// reached is Reached of a mark whose place is known to fit, once the log has been read.
func (s *opener) reached(m Mark) bool {
	i := slices.IndexFunc(s.tail, func(sg *segment.Segment) bool { return sg.ID == m.Segment })
	if i >= 0 && m.Length > uint64(s.tail[i].FramesEnd) {
		return false
	}
	return gave(s.man.Manifest, m, s.log.Next())
}

// Mark names a state of the log: all that it holds up to a sequence number, with the opening of the store that gave the
// number, and the place where it ends: fields Opening, Sequence, Segment, Length and Sum. INDEX and TTL carry the mark
// of the state that they describe.
type Mark = format.Mark
