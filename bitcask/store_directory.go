package bitcask

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
)

// The directory of a store may be moved, replaced or removed while the store is open, and so may the file LOCK.
//
// All names are looked up from a handle of the directory (vfs.Hold), never by its path (I9). So a store whose directory
// was moved continues in it, and one that has taken its place is never touched. The lock moves along.
//
// A directory that was removed is another matter: bytes written to files without a name are lost at Close. And without
// its name LOCK excludes no process. Both are noticed
//
//   - by every sync of the log, before it is acknowledged: the active segment has a name;
//   - before a segment is sealed or made, before a merge publishes and before it unlinks, before INDEX or TTL get their names, before Close
//     writes anything: also LOCK and MANIFEST have theirs;
//   - by the goroutine below, twice a second, and, after its first check, at once if the operating system reports it.
//
// Then the store refuses writes, but still serves reads.

// directoryEvery is how often the goroutine looks, whether or not anything was reported.
const directoryEvery = 500 * time.Millisecond

// removalTakes is how long the removal of a directory is given to get from LOCK to the other files: until then the two
// cases look alike.
const removalTakes = 50 * time.Millisecond

// hold takes the handle of the directory.
func (s *Store) hold() (err error) {
	if s.opts.ReadOnly {
		s.held, err = vfs.Hold(s.opts.seam.FS, s.dir)
	} else {
		s.held, err = vfs.HoldNew(s.opts.seam.FS, s.dir)
	}
	if err == nil {
		s.opts.seam.FS = s.held
	}
	return err
}

// watchDirectory watches the directory until the store closes.
func (s *Store) watchDirectory() {
	reported := make(chan struct{}, 1)
	report := func() {
		select {
		case reported <- struct{}{}:
		default:
		}
	}
	var stop func() // nil: not watched yet
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	tick := time.NewTicker(directoryEvery)
	defer tick.Stop()
	leads, troubled := vfs.Here, false
	for {
		select {
		case <-s.work.stop:
			return
		case <-reported:
		case <-tick.C:
			if stop == nil { // Not at once: it costs more than opening and closing a small store, and most commands are done by now.
				stop = s.held.Watch(filepath.Join(s.dir, format.LockName), report)
			}
		}
		err := s.inspectDirectory()
		if errors.Is(err, ErrLockLost) && s.work.wait(removalTakes) {
			err = s.inspectDirectory()
		}
		if refusing(err) {
			_ = s.log.Fail(err) // logged, and kept
			return
		}
		now, werr := s.held.Where()
		if err = errors.Join(err, werr); (err != nil) != troubled {
			if troubled = err != nil; troubled {
				s.opts.Logger.Warn("cannot look after the directory", "dir", s.dir, "err", err)
			}
		}
		if werr == nil && now != leads {
			leads = now
			s.logMove(now)
		}
	}
}

func (s *Store) logMove(now vfs.Where) {
	switch now {
	case vfs.Nowhere:
		s.opts.Logger.Warn("the directory was moved; the store stays in it", "dir", s.dir)
	case vfs.Elsewhere:
		s.opts.Logger.Warn("another directory is in the place of the store's; the store stays in its own, wherever that was moved", "dir", s.dir)
	case vfs.Here:
		s.opts.Logger.Info("the directory is back in its place", "dir", s.dir)
	}
}

// refusing reports whether an error of inspectDirectory is a reason to refuse writes.
func refusing(err error) bool { return errors.Is(err, ErrDirectoryGone) || errors.Is(err, ErrLockLost) }

// checkDirectory is called, without locks, before a step that would be lost in a directory that is gone, or harm
// another process that has the store. Its error is that of a store which refuses writes. An unknown state is no error.
func (s *Store) checkDirectory() error {
	if err := s.inspectDirectory(); refusing(err) {
		return s.log.Fail(err)
	}
	return s.Err()
}

// inspectDirectory checks whether the files that the store writes to, and LOCK, have their names.
func (s *Store) inspectDirectory() error {
	named, err := s.man.isNamed()
	if err != nil {
		return err
	}
	if !named {
		return fmt.Errorf("%w: %s", ErrDirectoryGone, manifest.FileName)
	}
	active := s.log.Active()
	if named, err = s.hasName(active); err != nil || !named {
		replaced := active != s.log.Active() // then a merge may have taken it
		switch {
		case replaced:
		case err != nil:
			return err
		default:
			return fmt.Errorf("%w: %s", ErrDirectoryGone, active.Name)
		}
	}
	if named, err = vfs.HasName(s.lock, filepath.Join(s.dir, format.LockName)); err == nil && !named {
		err = ErrLockLost
	}
	return err
}

// unlinked reports whether a segment's file has lost its name. It is asked with every sync, so it asks the cheaper
// question first: what has been moved aside, or has another name, is left to the goroutine.
func (s *Store) unlinked(sg *segment.Segment) bool {
	if vfs.HasAnyName(sg.File) {
		return false
	}
	named, err := s.hasName(sg) // some file systems do not count
	return err == nil && !named
}

// hasName reports whether the name of a segment still leads to its file.
func (s *Store) hasName(sg *segment.Segment) (bool, error) {
	return vfs.HasName(sg.File, filepath.Join(s.dir, sg.Name))
}
