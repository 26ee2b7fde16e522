package bitcask

import (
	"encoding/binary"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/segment"
)

// Mark names a state of the log: all that it holds up to a sequence number.
// INDEX and TTL carry the mark of the state that they describe, so that they are
// believed only where the log has been in that state. Neither the number nor the
// place alone would do: copies and restored directories give the same numbers to
// other commits, and commits of the same lengths end at the same places.
//
//	+------------+-------------+-----------+-----------+-------------+
//	| opening u64| sequence u64| segment   | length u64| end crc u32 |
//	|            |             | id u32    |           |             |
//	+------------+-------------+-----------+-----------+-------------+
//	0            8             16          20          28            32
type Mark struct {
	Opening  uint64 // of the store for writing, which gave the sequence
	Sequence uint64 // of the newest record
	Segment  uint32 // that it ends in
	Length   uint64 // of that segment, up to there
	Sum      uint32 // of the last bytes of that length, up to 64
}

func (m Mark) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, m.Opening)
	b = binary.LittleEndian.AppendUint64(b, m.Sequence)
	b = binary.LittleEndian.AppendUint32(b, m.Segment)
	b = binary.LittleEndian.AppendUint64(b, m.Length)
	return binary.LittleEndian.AppendUint32(b, m.Sum)
}

// Mark returns the mark of all that has been written. A store that is open for
// reading has none to give.
func (s *Store) Mark() (Mark, error) {
	if s.opts.ReadOnly {
		return Mark{}, ErrReadOnly
	}
	l := &s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	m := Mark{Opening: s.opening, Sequence: l.writeSeq - 1, Segment: l.active.ID, Length: uint64(l.active.Size.Load())}
	var err error
	m.Sum, err = l.active.EndSum(int64(m.Length))
	return m, err
}

// place is where the state ends.
func (m Mark) place() indexSegment { return indexSegment{id: m.Segment, length: m.Length, end: m.Sum} }

// Reached reports whether the log has been in the state of a mark. It is to be
// asked before the first write.
func (s *Store) Reached(m Mark) bool {
	ss := s.segments.Load()
	if ss.find(m.Segment) != nil && !m.place().fits(ss, func(is indexSegment, err error) error {
		if s.opts.ReadDamaged && s.vouches(is) {
			return nil
		}
		return err
	}) {
		return false
	}
	return s.reached(m) // a merge may have taken the segment
}

// reached is that of a mark whose place is known to fit, once the log has been
// read.
func (s *Store) reached(m Mark) bool {
	i := slices.IndexFunc(s.tail, func(sg *segment.Segment) bool { return sg.ID == m.Segment })
	if i >= 0 && m.Length > uint64(s.tail[i].FramesEnd) {
		return false
	}
	return m.Sequence <= max(s.log.nextSeq-1, s.man.MaxSeq) && s.man.Gave(m.Opening, m.Sequence)
}
