package bitcask

import (
	"errors"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// hintLoop writes the hints of newly sealed segments. A hint only saves time,
// so its failure is logged and no more.
func (s *Store) hintLoop(done map[uint32]bool) {
	for {
		select {
		case <-s.work.stop:
			return
		case <-s.hinter:
		}
		s.maintenanceMu.Lock()
		for _, sg := range s.segments.Load().All() {
			if done[sg.ID] || !sg.Sealed() || s.work.stopping() || s.Err() != nil {
				continue
			}
			if s.Full() { // woken when there is space
				break
			}
			done[sg.ID] = true
			if sg.Merged && s.hasHint(sg) {
				continue
			}
			if err := segment.WriteHint(s.opts.seam.FS, s.dir, sg, s.work.stopping); err != nil && !errors.Is(err, failure.ErrCancelled) {
				s.opts.Logger.Warn("hint not written", "file", format.HintName(sg.ID), "err", err)
			}
		}
		s.maintenanceMu.Unlock()
	}
}

func (s *Store) hasHint(sg *segment.Segment) bool {
	hs, err := segment.OpenHint(s.opts.seam.FS, s.dir, sg)
	return err == nil && hs.Close() == nil
}

func (s *Store) wakeHinter() {
	select {
	case s.hinter <- struct{}{}:
	default:
	}
}

// removeHint removes a hint that is no good, so that the next Open does not
// read it again without a result. It only saves time: a failure is no reason to stop.
func (s *Store) removeHint(sg *segment.Segment) {
	if s.opts.ReadOnly {
		return
	}
	if err := s.opts.seam.FS.Remove(filepath.Join(s.dir, format.HintName(sg.ID))); err != nil {
		s.opts.Logger.Warn("bad hint not removed", "file", format.HintName(sg.ID), "err", err)
	}
}
