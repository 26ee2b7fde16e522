package db

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/stavedb/stave/internal/serverside/calls"
	"github.com/stavedb/stave/internal/vfs"
)

// keepOrphans writes a file of what the store has alone and is about to lose, since it becomes the replica of another one, into
// its directory orphans. When it returns, the file is on the disk, with its name and that of the directory; only then may the
// data be replaced. A file of the same name is of the same bytes, and stays: isNew is false.
//
// What a crash leaves:
//
//  1. Before the rename: the data, and perhaps a file with a name that ends in .new, which nobody reads and the next attempt replaces.
//  2. After the rename: the data, and the file or none. Without the sync of the directory the data could be replaced on the disk
//     while the file's name is not there yet.
//  3. After the sync of the directory: both. The next attempt finds the file.
func (s *Store) keepOrphans(name string, parts [][]byte) (isNew bool, err error) {
	if s.opts.ReadOnly {
		return false, ErrReadOnly
	}
	dir := filepath.Join(s.base.Dir(), calls.OrphansDir)
	held, err := vfs.HoldNew(s.held, dir)
	if err == nil {
		isNew, err = publishOrphans(held, filepath.Join(dir, name), parts)
		err = errors.Join(err, held.Close())
	}
	if err == nil {
		err = s.held.SyncDir(s.base.Dir()) // which has the name of the directory
	}
	if err != nil {
		return false, fmt.Errorf("db: keeping what a new master does not have: %w", err)
	}
	return isNew, nil
}

// orphans are the names of what is in that directory now, also those of other files; nil where there is none.
func (s *Store) orphans() (names []string, err error) {
	dir := filepath.Join(s.base.Dir(), calls.OrphansDir)
	held, err := vfs.Hold(s.held, dir)
	if err == nil {
		names, err = held.List(dir)
		err = errors.Join(err, held.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("db: looking for what a new master did not have: %w", err)
	}
	return names, nil
}

func publishOrphans(fsys vfs.FS, name string, parts [][]byte) (isNew bool, err error) {
	f, err := fsys.Open(name, vfs.ReadOnly)
	if err == nil {
		err = f.Close()
	} else if isNew = errors.Is(err, fs.ErrNotExist); isNew {
		err = writeOrphans(fsys, name, parts)
	}
	if err == nil { // a crash may have come before the sync of a file that is there
		err = fsys.SyncDir(filepath.Dir(name))
	}
	return isNew, err
}

func writeOrphans(fsys vfs.FS, name string, parts [][]byte) error {
	temp := name + ".new"
	f, err := vfs.Temporary(fsys, temp)
	if err != nil {
		return err
	}
	offset := int64(0)
	for _, part := range parts {
		if _, err = f.WriteAt(part, offset); err != nil {
			break
		}
		offset += int64(len(part))
	}
	return vfs.Publish(fsys, f, temp, name, err)
}
