package bitcask

import (
	"errors"
	"sync"

	"github.com/stavedb/stave/bitcask/internal/segment"
)

// pins keep the files of segments that a merge takes out of the store for as long as a backup may need them. If the process dies
// meanwhile, the next Open removes them: the manifest has forgotten them.
type pins struct {
	mu   sync.Mutex // guards all below
	held bool
	gone []*segment.Segment // unlisted, to be removed by unpinFiles
}

// pinFiles keeps the files of all segments that are listed from now on.
func (s *Store) pinFiles() {
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	s.pins.held = true
}

// unpinFiles ends pinFiles. A file that cannot be removed is not the backup's failure.
func (s *Store) unpinFiles() {
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	gone := s.pins.gone
	s.pins.held, s.pins.gone = false, nil
	if len(gone) == 0 {
		return
	}
	if err := s.removeSegments(gone, func(int64) {}); err != nil {
		s.opts.Logger.Warn("merged segments not removed", "err", err)
	}
}

// discard closes and removes segments that are not listed any more, now or when nothing holds them. freed is told the length of
// each that is removed now.
func (s *Store) discard(gone []*segment.Segment, freed func(bytes int64)) error {
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	if s.pins.held {
		s.pins.gone = append(s.pins.gone, gone...)
		return nil
	}
	return s.removeSegments(gone, freed)
}

func (s *Store) removeSegments(gone []*segment.Segment, freed func(bytes int64)) error {
	var errs []error
	if err := s.inspectDirectory(); refusing(err) {
		for _, sg := range gone { // another process may have the files
			errs = append(errs, sg.Close())
		}
		return errors.Join(append(errs, s.log.fail(err))...)
	}
	for _, sg := range gone {
		err := errors.Join(sg.Close(), s.removeSegment(sg))
		if err == nil {
			freed(sg.Size.Load())
		}
		errs = append(errs, err)
	}
	errs = append(errs, s.opts.FS.SyncDir(s.dir))
	return errors.Join(errs...)
}

// removeSegment unlinks a segment and its hint.
func (s *Store) removeSegment(sg *segment.Segment) error { return segment.Remove(s.opts.FS, s.dir, sg) }
