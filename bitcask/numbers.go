package bitcask

import (
	"fmt"
	"math"
)

// Numbers that are given once: segment ids, spaces, sequence numbers. None of
// them ever wraps: whoever needs one more than there are gets ErrFull before
// anything has changed. Offsets do not get that far: a segment is as long as
// Options.SegmentSize or one commit, both below 4 GiB.

const (
	// maxSequence leaves room for a ticket, which is a sequence number more.
	maxSequence = math.MaxUint64 - 1
	// maxSpace leaves room for the number of the next one.
	maxSpace = math.MaxUint32 - 1
)

// checkID returns ErrFull for a segment id beyond the highest one.
func checkID(id uint32) error {
	if id > maxSegmentID {
		return retryable{fmt.Errorf("segment id %d: %w", id, ErrFull)}
	}
	return nil
}

// following is the id after another one, which may be any that a file states.
func following(id uint32) uint32 {
	if id == math.MaxUint32 {
		return id
	}
	return id + 1
}

// checkNumbers refuses a manifest with numbers that are never given.
func (m *manifest) checkNumbers() error {
	if m.nextID > maxSegmentID+1 || m.firstOwn() > maxSegmentID+1 || m.maxSeq > maxSequence {
		return errEdit
	}
	return nil
}
