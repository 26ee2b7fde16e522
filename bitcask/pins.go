package bitcask

import (
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"

	"github.com/stavedb/stave/bitcask/internal/segment"
)

// pins keep the files of segments that a merge replaces for the readers of an earlier moment: backups and snapshots. If the process
// dies first, the next Open removes them: the manifest no longer lists them.
type pins struct {
	mu   sync.Mutex // guards all below
	all  map[*pin]bool
	gone []*segment.Segment // unlisted, to be removed when no pin holds them
}

// pin is one reader of the past.
type pin struct {
	owner  string // for messages
	logger *slog.Logger
	below  uint32 // it needs no segment with this id or a higher one
}

// holdsLocked reports whether a pin needs the files of a segment.
func (ps *pins) holdsLocked(sg *segment.Segment) bool {
	for p := range ps.all {
		if sg.ID < p.below {
			return true
		}
	}
	return false
}

// pinFiles keeps the files of all segments that are listed from now on, until release. It is called before the moment is chosen; then
// pinBelow says which segments that takes.
func (s *Store) pinFiles(owner string) *pin {
	p := &pin{owner: owner, logger: s.opts.Logger, below: math.MaxUint32}
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	if s.pins.all == nil {
		s.pins.all = map[*pin]bool{}
	}
	s.pins.all[p] = true
	return p
}

// pinBelow has a pin hold the segments with lower ids only.
func (s *Store) pinBelow(p *pin, below uint32) {
	s.pins.mu.Lock()
	p.below = below
	s.pins.mu.Unlock()
	s.removeUnpinned(p)
}

// unpinFiles ends pinFiles. A second call does nothing.
func (s *Store) unpinFiles(p *pin) {
	s.pins.mu.Lock()
	delete(s.pins.all, p)
	s.pins.mu.Unlock()
	s.removeUnpinned(p)
}

// removeUnpinned removes what no pin holds any more, now that the last one needs less. A file that cannot be removed is not the reader's
// failure.
func (s *Store) removeUnpinned(last *pin) {
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	var free []*segment.Segment
	s.pins.gone = slices.DeleteFunc(s.pins.gone, func(sg *segment.Segment) bool {
		if s.pins.holdsLocked(sg) {
			return false
		}
		free = append(free, sg)
		return true
	})
	if len(free) == 0 {
		return
	}
	if err := s.removeSegments(free, func(int64) {}); err != nil {
		last.logger.Warn("merged segments not removed", "after", last.owner, "err", err)
	}
}

// closePins removes what pins still hold, as long as the lock says that the files are ours. Snapshots have handles of their own. From
// then on no pin holds or removes anything.
func (s *Store) closePins() {
	s.pins.mu.Lock()
	clear(s.pins.all)
	s.pins.mu.Unlock()
	s.removeUnpinned(&pin{owner: "close", logger: s.opts.Logger})
}

// discard closes and removes segments that are no longer listed, now or when the last pin is released. freed gets the length of
// each that is removed now.
func (s *Store) discard(gone []*segment.Segment, freed func(bytes int64)) error {
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	var now []*segment.Segment
	for _, sg := range gone {
		if s.pins.holdsLocked(sg) {
			s.pins.gone = append(s.pins.gone, sg)
		} else {
			now = append(now, sg)
		}
	}
	if len(now) == 0 {
		return nil
	}
	return s.removeSegments(now, freed)
}

func (s *Store) removeSegments(gone []*segment.Segment, freed func(bytes int64)) error {
	var errs []error
	if err := s.inspectDirectory(); refusing(err) {
		for _, sg := range gone { // another process may have the files
			errs = append(errs, sg.Close())
		}
		return errors.Join(append(errs, s.log.Fail(err))...)
	}
	for _, sg := range gone {
		err := errors.Join(sg.Close(), s.removeSegment(sg))
		if err == nil {
			freed(sg.Size.Load())
		}
		errs = append(errs, err)
	}
	errs = append(errs, s.opts.seam.FS.SyncDir(s.dir))
	return errors.Join(errs...)
}

// removeSegment unlinks a segment and its hint.
func (s *Store) removeSegment(sg *segment.Segment) error {
	return segment.Remove(s.opts.seam.FS, s.dir, sg)
}
