package bitcask

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/nap"
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
//   - by the goroutine below, about once a second, and, after its first check, at once if the operating system reports it.
//
// Then the store refuses writes, but still serves reads.

// directoryEvery is how often the goroutine looks, whether or not anything was reported.
const directoryEvery = time.Second

// removalTakes is how long the removal of a directory is given to get from LOCK to the other files: until then the two
// cases look alike.
const removalTakes = 50 * time.Millisecond

// directoryGuard has the handle of the directory, and looks after the names of what is open in it. Its fields do not
// change once the store is open.
type directoryGuard struct {
	dir    string
	held   *vfs.Held // of dir; it is the file system of the store
	lock   io.Closer // nil in a store that is open for reading
	log    *commitlog.Log
	man    *lockedManifest
	work   *background
	logger *slog.Logger
}

// takeDirectory takes the handle of the directory and, for writing, LOCK, and opens the reserve.
func (s *opener) takeDirectory() (err error) {
	hold := vfs.HoldNew
	if s.opts.ReadOnly {
		hold = vfs.Hold
	}
	if s.guard.held, err = hold(s.opts.seam.FS, s.dir); err != nil {
		return err
	}
	s.opts.seam.FS = s.guard.held
	s.startReserve()
	if !s.opts.ReadOnly {
		if s.guard.lock, err = s.opts.seam.FS.Lock(filepath.Join(s.dir, format.LockName)); err != nil {
			if errors.Is(err, vfs.ErrLocked) {
				return fmt.Errorf("%w: %w", ErrLocked, err)
			}
			return err
		}
		s.reserve.Open()
	}
	return nil
}

// close releases the lock and the handle.
func (g *directoryGuard) close() error {
	var errs []error
	if g.lock != nil {
		errs = append(errs, g.lock.Close())
	}
	if g.held != nil {
		errs = append(errs, g.held.Close())
	}
	return errors.Join(errs...)
}

// watch watches the directory until the store closes.
func (g *directoryGuard) watch() {
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
	tick := time.NewTimer(directoryEvery)
	defer tick.Stop()
	leads, troubled := vfs.Here, false
	for {
		select {
		case <-g.work.stop:
			return
		case <-reported:
		case <-tick.C:
			tick.Reset(nap.Until(directoryEvery))
			if stop == nil { // Not at once: it costs more than opening and closing a small store, and most commands are done by now.
				stop = g.held.Watch(filepath.Join(g.dir, format.LockName), report)
			}
		}
		err := g.inspect()
		if errors.Is(err, ErrLockLost) && g.work.sleep(removalTakes) {
			err = g.inspect()
		}
		if refusing(err) {
			_ = g.log.Fail(err) // logged, and kept
			return
		}
		now, werr := g.held.Where()
		if err = errors.Join(err, werr); (err != nil) != troubled {
			if troubled = err != nil; troubled {
				g.logger.Warn("cannot look after the directory", "dir", g.dir, "err", err)
			}
		}
		if werr == nil && now != leads {
			leads = now
			g.logMove(now)
		}
	}
}

func (g *directoryGuard) logMove(now vfs.Where) {
	switch now {
	case vfs.Nowhere:
		g.logger.Warn("the directory was moved; the store stays in it", "dir", g.dir)
	case vfs.Elsewhere:
		g.logger.Warn("another directory is in the place of the store's; the store stays in its own, wherever that was moved", "dir", g.dir)
	case vfs.Here:
		g.logger.Info("the directory is back in its place", "dir", g.dir)
	}
}

// refusing reports whether an error of inspect is a reason to refuse writes.
func refusing(err error) bool { return errors.Is(err, ErrDirectoryGone) || errors.Is(err, ErrLockLost) }

// check is called before a step that would be lost in a directory that is gone, or harm another process that has the
// store. The caller holds neither the log's lock nor the manifest's. The error is that of a store which refuses writes; an
// unknown state is none.
func (g *directoryGuard) check() error {
	if err := g.inspect(); refusing(err) {
		return g.log.Fail(err)
	}
	return g.log.Err()
}

// inspect checks whether the files that the store writes to, and LOCK, have their names.
func (g *directoryGuard) inspect() error {
	named, err := g.man.isNamed()
	if err != nil {
		return err
	}
	if !named {
		return fmt.Errorf("%w: %s", ErrDirectoryGone, manifest.FileName)
	}
	active := g.log.Active()
	if named, err = g.hasName(active); err != nil || !named {
		replaced := active != g.log.Active() // then a merge may have taken it
		switch {
		case replaced:
		case err != nil:
			return err
		default:
			return fmt.Errorf("%w: %s", ErrDirectoryGone, active.Name)
		}
	}
	if named, err = vfs.HasName(g.lock, filepath.Join(g.dir, format.LockName)); err == nil && !named {
		err = ErrLockLost
	}
	return err
}

// unlinked reports whether a segment's file has lost its name. It is asked with every sync, so it asks the cheaper
// question first: what has been moved aside, or has another name, is left to the goroutine.
func (g *directoryGuard) unlinked(sg *segment.Segment) bool {
	if vfs.HasAnyName(sg.File) {
		return false
	}
	named, err := g.hasName(sg) // some file systems do not count
	return err == nil && !named
}

// hasName reports whether the name of a segment still leads to its file.
func (g *directoryGuard) hasName(sg *segment.Segment) (bool, error) {
	return vfs.HasName(sg.File, filepath.Join(g.dir, sg.Name))
}
