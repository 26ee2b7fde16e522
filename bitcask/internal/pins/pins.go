// Package pins keeps the files of segments that a merge replaces for the readers of an earlier moment: backups and
// snapshots. If the process dies first, the next Open removes them: the manifest no longer lists them.
package pins

import (
	"log/slog"
	"math"
	"slices"
	"sync"

	"github.com/stavedb/stave/bitcask/internal/segment"
)

// Pins are those of one store.
type Pins struct {
	// Remove closes and removes segments, and calls freed with the length of each that is gone.
	Remove func(gone []*segment.Segment, freed func(bytes int64)) error

	mu   sync.Mutex // guards all below
	all  map[*Pin]bool
	gone []*segment.Segment // unlisted, to be removed when no pin holds them
}

// Pin is one reader of the past.
type Pin struct {
	owner  string       // for messages
	Logger *slog.Logger // of what could not be removed
	below  uint32       // it needs no segment with this id or a higher one
}

// holdsLocked reports whether a pin needs the files of a segment.
func (ps *Pins) holdsLocked(sg *segment.Segment) bool {
	for p := range ps.all {
		if sg.ID < p.below {
			return true
		}
	}
	return false
}

// Hold keeps the files of all segments that are listed from now on, until Release. It is called before the moment is
// chosen; then Below says which segments that takes.
func (ps *Pins) Hold(owner string, logger *slog.Logger) *Pin {
	p := &Pin{owner: owner, Logger: logger, below: math.MaxUint32}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.all == nil {
		ps.all = map[*Pin]bool{}
	}
	ps.all[p] = true
	return p
}

// Below has a pin hold the segments with lower ids only.
func (ps *Pins) Below(p *Pin, below uint32) {
	ps.mu.Lock()
	p.below = below
	ps.mu.Unlock()
	ps.removeUnpinned(p)
}

// Release ends Hold. A second call does nothing.
func (ps *Pins) Release(p *Pin) {
	ps.mu.Lock()
	delete(ps.all, p)
	ps.mu.Unlock()
	ps.removeUnpinned(p)
}

// removeUnpinned removes what no pin holds any more, now that the last one needs less. A file that cannot be removed is
// not the reader's failure.
func (ps *Pins) removeUnpinned(last *Pin) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var free []*segment.Segment
	ps.gone = slices.DeleteFunc(ps.gone, func(sg *segment.Segment) bool {
		if ps.holdsLocked(sg) {
			return false
		}
		free = append(free, sg)
		return true
	})
	if len(free) == 0 {
		return
	}
	if err := ps.Remove(free, func(int64) {}); err != nil {
		last.Logger.Warn("merged segments not removed", "after", last.owner, "err", err)
	}
}

// Close removes what pins still hold, as long as the lock says that the files are ours. Snapshots have handles of their
// own. From then on no pin holds or removes anything.
func (ps *Pins) Close(logger *slog.Logger) {
	ps.mu.Lock()
	clear(ps.all)
	ps.mu.Unlock()
	ps.removeUnpinned(&Pin{owner: "close", Logger: logger})
}

// Discard closes and removes segments that are no longer listed, now or when the last pin is released. freed gets the
// length of each that is removed now.
func (ps *Pins) Discard(gone []*segment.Segment, freed func(bytes int64)) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var now []*segment.Segment
	for _, sg := range gone {
		if ps.holdsLocked(sg) {
			ps.gone = append(ps.gone, sg)
		} else {
			now = append(now, sg)
		}
	}
	if len(now) == 0 {
		return nil
	}
	return ps.Remove(now, freed)
}

// Unneeded returns the segments of a list that no pin holds, and the others.
func (ps *Pins) Unneeded(list []*segment.Segment) (free, held []*segment.Segment) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, sg := range list {
		if ps.holdsLocked(sg) {
			held = append(held, sg)
		} else {
			free = append(free, sg)
		}
	}
	return free, held
}

// Gone are the segments that merges have replaced and that a pin still holds.
func (ps *Pins) Gone() []*segment.Segment {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return slices.Clone(ps.gone)
}
