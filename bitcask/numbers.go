package bitcask

import "github.com/stavedb/stave/bitcask/internal/format"

// Numbers that are given once: segment ids, spaces, sequence numbers. None of
// them ever wraps: whoever needs one more than there are gets ErrFull before
// anything has changed. Offsets do not get that far: a segment is as long as
// Options.SegmentSize or one commit, both below 4 GiB.

// checkNumbers refuses a manifest with numbers that are never given.
func (m *manifest) checkNumbers() error {
	if m.nextID > format.MaxSegmentID+1 || m.firstOwn() > format.MaxSegmentID+1 || m.maxSeq > format.MaxSequence {
		return errEdit
	}
	return nil
}
