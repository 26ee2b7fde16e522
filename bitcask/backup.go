package bitcask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/backup"
	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/bitcask/internal/failure"
)

// BackupResult says what a backup is made of.
type BackupResult struct {
	Sequence    uint64 `json:"sequence"` // of the newest record in it
	Segments    int    `json:"segments"`
	Linked      int    `json:"linked"` // of them, that the two stores share
	Copied      int    `json:"copied"` // of them, that only the backup has
	BytesLinked int64  `json:"bytes_linked"`
	BytesCopied int64  `json:"bytes_copied"`
	Reused      int    `json:"reused,omitempty"` // of them, that an earlier backup has as well
	BytesReused int64  `json:"bytes_reused,omitempty"`
	Damaged     int    `json:"damaged,omitempty"` // segments of the earlier backup that do not verify
}

// Backup makes a copy of the store in dir, which must not exist, or be an empty directory; its parent must exist,
// outside the store's own directory. The copy is durable when Backup returns, and holds every write that was
// acknowledged before Backup was called (of a store open for reading: what that shows). It shares the files of the
// sealed segments with this store where the file system allows that: it then takes the time to copy the unsealed ones,
// and damage to a shared file damages both. Only what is copied of the unsealed segments is verified: Check of the copy
// verifies the rest.
//
// One backup runs at a time, others wait for it. After an error there is no backup, except if only the sync of its
// parent failed: then it may be there, whole. Errors: ErrNotEmpty, ErrLocked if another process makes a backup there,
// ErrClosed, ErrFollowing, ErrFailed in a store that refuses writes, ErrNoSpace if the disk of the copy is full, a *CorruptError
// in a store opened with damage, the context's, or the file system's.
func (s *Store) Backup(ctx context.Context, dir string) (BackupResult, error) {
	return s.BackupSince(ctx, dir, "")
}

// BackupSince is Backup with the help of an earlier backup of this store, in a directory on the file system of the new
// one: segments that it has are shared with it by hard links and not copied again, after every byte of them has been
// verified there. So a backup on another disk takes the time and the space of what has been written, or merged, since.
// The new one needs nothing of the earlier one, which may be deleted, and which is not changed. Segments that are
// damaged there, or missing, are taken from the store, and counted. Further errors: ErrForeign if earlier is of another
// store, and those of reading its manifest.
func (s *Store) BackupSince(ctx context.Context, dir, earlier string) (BackupResult, error) {
	if err := s.backups.LockUnless(ctx); err != nil {
		return BackupResult{}, err
	}
	defer s.backups.Unlock()
	if s.closed.Load() {
		return BackupResult{}, ErrClosed
	}
	src, err := s.backupSource(ctx)
	if err == nil {
		var r backup.Result
		src.Earlier = earlier
		if r, err = backup.Directory(src, dir); err == nil {
			return BackupResult(r), nil
		}
	}
	return BackupResult{}, fmt.Errorf("backup %s: %w", filepath.Clean(dir), failure.NameNoSpace(err))
}

// BackupTo writes a copy of the store at one moment to w, as a tar archive: extracted into an empty directory it is a
// store of its own, with the content that Backup would give it. Reads, writes, rotations and merges continue, and
// nothing waits for w: segments that a merge replaces keep their files until BackupTo returns. It takes the time to
// write all segments to w, and a few MB of memory whatever the size of the store. Several may run at a time.
//
//	$ mkdir copy && tar -x -C copy -f backup.tar && sync
//
// tar does not sync what it extracts. Only unsealed segments are verified: Check of the extracted copy verifies the
// rest.
//
// w is called with nothing locked, so it may use the store; if it panics nothing stays held. After an error, w's own
// included, the bytes written are no usable archive. Errors: ErrClosed, also if the store is closed during the call,
// ErrFollowing, ErrFailed in a store that refuses writes, a *CorruptError for bytes that do not verify or in a store
// opened with damage, the context's, w's (an ErrNoSpace, too, if it is of a full disk), or the file system's.
func (s *Store) BackupTo(ctx context.Context, w io.Writer) (BackupResult, error) {
	src, err := s.backupSource(ctx)
	if err == nil {
		var r backup.Result
		if r, err = backup.Archive(src, w); err == nil {
			return BackupResult(r), nil
		}
	}
	if s.closed.Load() && !errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return BackupResult{}, fmt.Errorf("backup: %w", failure.NameNoSpace(err))
}

// backupSource is the store as a backup knows it.
func (s *Store) backupSource(ctx context.Context) (*backup.Source, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if len(s.recovery.Damage) > 0 {
		return nil, &s.recovery.Damage[0]
	}
	if s.follower != nil {
		return nil, ErrFollowing
	}
	ended := func() error {
		if s.work.stopping() {
			return ErrClosed
		}
		return ctx.Err()
	}
	return &backup.Source{
		FS: s.guard.held, Dir: s.dir, ReadOnly: s.opts.ReadOnly, NoHints: s.opts.seam.NoHints, Cut: s.backupCut, Manifest: s.man.inherited, Ended: ended, Read: s.opts.seam.Progress,
	}, nil
}

// backupCut returns the segments of a backup. Merges keep their files until release.
func (s *Store) backupCut() (list []commitlog.CutSegment, next uint64, release func(), err error) {
	pin := s.pins.Hold("backup", s.opts.Logger)
	if list, next, err = s.log.Cut(nil); err != nil {
		s.pins.Release(pin)
		return nil, 0, nil, err
	}
	s.pins.Below(pin, boundOf(list))
	list = slices.DeleteFunc(list, func(c commitlog.CutSegment) bool { return c.Frames > 0 && c.Foot.Records == 0 })
	return list, next, func() { s.pins.Release(pin) }, nil
}
