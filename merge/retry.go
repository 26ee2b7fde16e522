package merge

import (
	"errors"
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/backoff"
)

// How long Tick waits after failures. A failing merge costs reads and writes; a long wait lets garbage grow.
const (
	retryFirst = time.Second
	retryLast  = time.Hour
	retryFull  = time.Minute // the longest on a full disk: space may come back at any time
	retryNever = 1 << 62     // of damaged segments: they stay damaged
)

// segments returns the segments; in the background without those that a merge could not read lately, so that the others
// are merged. A merge by Run tries them all and reports the damage.
func (m *Merger) segments(background bool) []bitcask.SegmentInfo {
	list := m.store.Segments()
	if !background {
		return list
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(list, func(sg bitcask.SegmentInfo) bool {
		b := m.skipped[sg.File]
		return b != nil && !b.Due()
	})
}

// failed records why a merge by Tick failed. A file that cannot be read is skipped for a while, a damaged one for good;
// after any other failure the same merge is not retried for a while. It reports whether the failure differs from the
// last one.
func (m *Merger) failed(due dueMerge, err error) (news bool) {
	var bad *bitcask.CorruptError
	var unread *bitcask.SegmentError
	switch {
	case errors.As(err, &bad):
		return m.skip(bad.File, retryNever, retryNever, err)
	case errors.As(err, &unread):
		return m.skip(unread.File, retryFirst, retryLast, err)
	}
	m.failedDue = due
	if bitcask.NoSpace(err) {
		return m.retry.Failed(retryFirst, retryFull, err)
	}
	return m.retry.Failed(retryFirst, retryLast, err)
}

// skip leaves a file out of the merges of Tick, until a time that doubles with each failure.
func (m *Merger) skip(file string, first, last time.Duration, err error) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.skipped == nil {
		m.skipped = make(map[string]*backoff.Backoff)
	}
	if m.skipped[file] == nil {
		m.skipped[file] = new(backoff.Backoff)
	}
	return m.skipped[file].Failed(first, last, err)
}
