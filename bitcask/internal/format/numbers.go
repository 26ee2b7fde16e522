package format

import (
	"fmt"
	"math"

	"github.com/stavedb/stave/bitcask/internal/failure"
)

// Numbers that are given once: segment ids, spaces, sequence numbers. None of them ever wraps: a
// request beyond the last number gets ErrFull before anything has changed. Offsets do not get that
// far: a segment is as long as Options.SegmentSize or one commit, both below 4 GiB.

// CheckID returns ErrFull for a segment id beyond the highest one.
func CheckID(id uint32) error {
	if id > MaxSegmentID {
		return failure.NewRetryable(fmt.Errorf("segment id %d: %w", id, failure.ErrFull))
	}
	return nil
}

// Following is the id after another one, which may be any that a file states.
func Following(id uint32) uint32 {
	if id == math.MaxUint32 {
		return id
	}
	return id + 1
}

const (
	// MaxSequence leaves room for a ticket, which is a sequence number more.
	MaxSequence = math.MaxUint64 - 1
	// MaxSpace leaves room for the number of the next one.
	MaxSpace = math.MaxUint32 - 1
	// MaxSegmentLength is what an offset of 32 bits can reach.
	MaxSegmentLength = 1<<32 - 1
)
