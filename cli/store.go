package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// How commands open a store. Commands that only read must not make one: a
// misspelt path would be answered with an empty store instead of an error.
// Those that write make one in a new or an empty directory, and never among
// files of others.

// absolute makes a path absolute where that is possible. It is not where the working directory has been removed; the
// path is good enough then for messages.
func absolute(dir string) string {
	if path, err := filepath.Abs(dir); err == nil {
		return path
	}
	return dir
}

// storeName is what the prompt calls a store: the last element of its path, for a prompt has no room for more.
func storeName(dir string) string { return filepath.Base(absolute(dir)) }

// openStore opens the store in dir for reading and writing, and makes it if it
// is not there. sync is the value of --sync. It merges in the background while
// it is open, as a server does.
func openStore(ctx context.Context, t *terminal.Streams, dir, sync string) (*db.Store, error) {
	mode, err := syncMode(sync)
	if err != nil {
		return nil, err
	}
	return openOrMake(ctx, t, dir, &db.Options{Sync: mode})
}

// storeFiles are files by which a directory is known to be a store's, with segments, which holdsStore knows by their
// suffix. Any of them will do: a store that lost its manifest is a store, whose opening says what is wrong.
var storeFiles = []string{bitcask.ManifestFile, bitcask.LockFile, bitcask.TTLName, bitcask.IndexFile}

// openOrMake opens the store in dir for writing, and makes it if the directory is not there, or has nothing
// in it: a store among the files of others is a slip.
func openOrMake(ctx context.Context, t *terminal.Streams, dir string, o *db.Options) (*db.Store, error) {
	if _, err := holdsStore(dir); err != nil {
		return nil, err
	}
	return openTelling(ctx, t, dir, o)
}

// holdsStore reports whether there is a store in a directory. It is an error if there is none, and none may be made,
// because files of others are there. Hidden files and lost+found do not count: a new disk and a home directory have
// such.
func holdsStore(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, openError(dir, err)
	}
	foreign := ""
	for _, entry := range entries {
		switch name := entry.Name(); {
		case slices.Contains(storeFiles, strings.TrimSuffix(name, ".new")), filepath.Ext(name) == bitcask.DataSuffix:
			return true, nil
		case name != "lost+found" && !strings.HasPrefix(name, "."):
			foreign = name
		}
	}
	if foreign != "" {
		return false, openError(dir, fmt.Errorf("there is no store here, but other files, such as %s: choose a new or an empty directory", foreign))
	}
	return false, nil
}

// openExisting opens a store that must be there. The manifest is what makes a directory a store.
// Data files without one are what a damaged store leaves, and repair can read them, so that has an
// error of its own.
func openExisting(ctx context.Context, t *terminal.Streams, dir string, o *db.Options) (*db.Store, error) {
	if err := mustBeStore(dir); err != nil {
		return nil, err
	}
	return openTelling(ctx, t, dir, o)
}

// logBytes is how many bytes of segments a directory has: what there is to read. It is the total of a bar, before the
// store is open, so an error makes it smaller and nothing worse.
func logBytes(dir string) (bytes int64) {
	entries, _ := os.ReadDir(dir) // whoever opens the store has the error
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && filepath.Ext(entry.Name()) == bitcask.DataSuffix {
			bytes += info.Size()
		}
	}
	return bytes
}

// mustBeStore is why a directory is no store, nil if it is one. A directory with segments and no manifest is a damaged
// store (isDamage), not a missing one.
func mustBeStore(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return openError(dir, err)
	}
	manifest, segments := false, false
	for _, entry := range entries {
		manifest = manifest || entry.Name() == bitcask.ManifestFile
		segments = segments || filepath.Ext(entry.Name()) == bitcask.DataSuffix
	}
	switch {
	case !manifest && segments:
		return openError(dir, bitcask.ErrManifest)
	case !manifest:
		return openError(dir, errors.New("there is no store in this directory"))
	}
	return nil
}

// openTelling opens a store. What recovery has truncated on the way is said on the standard error:
// I7, nothing disappears silently. Files that held nothing but zeros are not kept and not mentioned.
// The opening, which reads the log, ends when ctx does. Every command that opens a user's store comes
// through here, but for doctor, which words errors in its own way.
func openTelling(ctx context.Context, t *terminal.Streams, dir string, o *db.Options) (*db.Store, error) {
	seam.Of(o).Until = ctx
	store, err := db.Open(dir, o)
	if err != nil && ctx.Err() != nil {
		t.Complain(fmt.Errorf("interrupted while %s was opened", dir))
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, openError(dir, err)
	}
	for _, r := range store.Log().Recovery().Truncated {
		if r.Kept != "" {
			t.Complain(fmt.Errorf("%s: %v", dir, r))
		}
	}
	return store, nil
}

// closeInto closes what a command has opened, and adds the error to that of the command: what was
// written to a store that does not close may not be on disk. It is deferred with the address of the
// command's named result; the status of the first error stays.
func closeInto(err *error, closing func() error) {
	if closeErr := closing(); closeErr != nil {
		*err = errors.Join(*err, failed(exitCommand, fmt.Errorf("close: %w", closeErr)))
	}
}

// syncMode reads the value of --sync. The names are db.SyncMode's own; redis.conf's appendfsync has others, which serve
// translates.
func syncMode(name string) (db.SyncMode, error) {
	for _, mode := range []db.SyncMode{db.SyncInterval, db.SyncAlways, db.SyncNone} {
		if mode.String() == name {
			return mode, nil
		}
	}
	return 0, usagef("--sync must be always, interval or none, not %q", name)
}

// openError words why a store could not be opened: in one line, and with the
// process that has it if one does. Whatever the error, the text names the
// directory once. The error stays in the chain, so isDamage sees it.
func openError(dir string, err error) error {
	if err == nil {
		return nil
	}
	locked, isLocked := errors.AsType[*vfs.LockedError](err)
	path, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case isLocked:
		err = fmt.Errorf("open %s: locked by %s", dir, cmp.Or(locked.Holder, "another process"))
	case errors.Is(err, bitcask.ErrLocked):
		err = fmt.Errorf("open %s: locked by another process", dir)
	case isPath && path.Path == dir:
		err = fmt.Errorf("open %s: %w", dir, path.Err)
	case !isOpening(err, dir):
		err = fmt.Errorf("open %s: %w", dir, err)
	}
	return failed(exitOpen, err)
}

// isOpening reports whether an error already says which store could not be opened. It compares text, for that is what
// would be repeated.
func isOpening(err error, dir string) bool {
	return strings.HasPrefix(strings.TrimPrefix(err.Error(), "db: "), "open "+dir+":")
}
