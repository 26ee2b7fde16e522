package bitcask

import (
	"errors"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// hintLoop writes the hints of newly sealed segments. A hint only saves time, so its failure is logged and no more. It may be as long
// as its segment, where keys are long, and must not take what deletes on a full disk need.
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
			if s.measureDisk(); s.Full() || !s.reserve.Spares(sg.Size.Load()) { // woken when there is space, and by the next segment
				break
			}
			done[sg.ID] = true
			if sg.Merged && hasHint(s.opts.seam.FS, s.dir, sg) {
				continue
			}
			if err := segment.WriteHint(s.opts.seam.FS, s.dir, sg, s.work.stopping); err != nil && !errors.Is(err, failure.ErrCancelled) {
				s.opts.Logger.Warn("hint not written", "file", format.HintName(sg.ID), "err", err)
			}
		}
		s.maintenanceMu.Unlock()
	}
}

func hasHint(fsys vfs.FS, dir string, sg *segment.Segment) bool {
	hs, err := segment.OpenHint(fsys, dir, sg)
	return err == nil && hs.Close() == nil
}

func (s *Store) wakeHinter() {
	select {
	case s.hinter <- struct{}{}:
	default:
	}
}
