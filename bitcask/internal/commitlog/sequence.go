package commitlog

import (
	"fmt"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
)

// giveSequencesLocked gives n records their sequence numbers and returns the first, or ErrFull if there are not as many
// more. I3: they ascend without a gap, in the order of the frames, because the same lock gives a frame its place.
func (l *Log) giveSequencesLocked(n uint64) (first uint64, err error) {
	if l.nextSeq > format.MaxSequence || n > format.MaxSequence-l.nextSeq+1 {
		return 0, fmt.Errorf("sequence number %d: %w", l.nextSeq, failure.ErrFull)
	}
	first = l.nextSeq
	l.nextSeq += n
	return first, nil
}

// Next is the sequence number that the next record will have.
func (l *Log) Next() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nextSeq
}

// Written is the sequence number after the last record that has been written.
func (l *Log) Written() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writeSeq
}

// Reach notes, while the store is opened, that all sequence numbers below next have been given.
func (l *Log) Reach(next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextSeq = max(l.nextSeq, next)
	l.writeSeq = l.nextSeq
}
