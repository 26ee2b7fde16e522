package merge

import (
	"errors"
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/backoff"
)

// How long Tick waits after failures. A merge that fails costs reads, and what it writes; what is garbage grows meanwhile.
const (
	retryFirst = time.Second
	retryLast  = time.Hour
	retryFull  = time.Minute // the longest on a full disk: space may come back at any time
	retryNever = 1 << 62     // of what is damaged: it will not mend
)

// segments lists the segments without those, for Tick, that a merge could not read lately: the others are merged meanwhile. A
// merge by hand tries, and says what is wrong.
func (m *Merger) segments(byTick bool) []bitcask.SegmentInfo {
	list := m.store.Segments()
	if !byTick {
		return list
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(list, func(sg bitcask.SegmentInfo) bool {
		b := m.avoided[sg.File]
		return b != nil && !b.Due()
	})
}

// failed notes why a merge by Tick failed. A file that cannot be read is left out for a while, a damaged one for good; after
// any other failure the same merge is not tried for a while. It reports whether the failure is news.
func (m *Merger) failed(ids []uint32, err error) (news bool) {
	var bad *bitcask.CorruptError
	var unread *bitcask.SegmentError
	switch {
	case errors.As(err, &bad):
		return m.avoid(bad.File, retryNever, retryNever, err)
	case errors.As(err, &unread):
		return m.avoid(unread.File, retryFirst, retryLast, err)
	}
	m.tried = ids
	if bitcask.NoSpace(err) {
		return m.retry.Failed(retryFirst, retryFull, err)
	}
	return m.retry.Failed(retryFirst, retryLast, err)
}

func (m *Merger) avoid(file string, first, last time.Duration, err error) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.avoided == nil {
		m.avoided = make(map[string]*backoff.Backoff)
	}
	if m.avoided[file] == nil {
		m.avoided[file] = new(backoff.Backoff)
	}
	return m.avoided[file].Failed(first, last, err)
}
