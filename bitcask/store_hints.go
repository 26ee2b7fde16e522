package bitcask

import (
	"errors"
	"path/filepath"

	"github.com/stavedb/stave/bitcask/internal/format"
)

// hintLoop writes the hints of newly sealed segments. A hint only saves time,
// so its failure is logged and no more.
func (s *Store) hintLoop(done map[uint32]bool) {
	for {
		select {
		case <-s.stop:
			return
		case <-s.hinter:
		}
		s.maintenanceMu.Lock()
		for _, sg := range s.segments.Load().all() {
			if done[sg.id] || !sg.sealed() || s.stopping() || s.Err() != nil {
				continue
			}
			if s.Full() { // woken when there is space
				break
			}
			done[sg.id] = true
			if sg.merged && s.hasHint(sg) {
				continue
			}
			if err := writeHint(s.opts.FS, s.dir, sg, s.stopping); err != nil && !errors.Is(err, errCancelled) {
				s.opts.Logger.Warn("hint not written", "file", format.HintName(sg.id), "err", err)
			}
		}
		s.maintenanceMu.Unlock()
	}
}

func (s *Store) hasHint(sg *segment) bool {
	hs, err := openHint(s.opts.FS, s.dir, sg)
	return err == nil && hs.close() == nil
}

func (s *Store) wakeHinter() {
	select {
	case s.hinter <- struct{}{}:
	default:
	}
}

// removeHint removes a hint that is no good, so that the next Open does not
// read it again in vain. It only saves time: a failure is no reason to stop.
func (s *Store) removeHint(sg *segment) {
	if s.opts.ReadOnly {
		return
	}
	if err := s.opts.FS.Remove(filepath.Join(s.dir, format.HintName(sg.id))); err != nil {
		s.opts.Logger.Warn("bad hint not removed", "file", format.HintName(sg.id), "err", err)
	}
}
