package vfs

import (
	"errors"
	"io/fs"
)

// A file that must never stand there half done is written under a temporary name ([Temporary]), synced, and renamed
// ([Publish]); then its directory is synced, by the caller, before anything relies on the name.

// Temporary makes a file under a temporary name, in place of one that a crash has left.
func Temporary(fsys FS, temp string) (File, error) {
	if err := removeIfThere(fsys, temp); err != nil {
		return nil, err
	}
	return fsys.Open(temp, Create)
}

// Publish syncs and closes a file that was written under a temporary name, and gives it its own; err is how writing it
// went. After a failure the temporary file is removed. A crash before the rename leaves the temporary file.
func Publish(fsys FS, f File, temp, name string, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(temp, name)
	}
	return removeFailed(fsys, temp, err)
}

// PublishOpen is [Publish] of a file that stays open, unless that fails.
func PublishOpen(fsys FS, f File, temp, name string, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fsys.Rename(temp, name)
	}
	if err != nil {
		err = errors.Join(err, f.Close())
	}
	return removeFailed(fsys, temp, err)
}

// removeFailed removes the temporary file if there is an error.
func removeFailed(fsys FS, temp string, err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, removeIfThere(fsys, temp))
}

func removeIfThere(fsys FS, name string) error {
	if err := fsys.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
