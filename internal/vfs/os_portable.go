//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package vfs

import (
	"io/fs"
	"os"
	"runtime"
)

// openRegular opens name if it is a regular file or, with O_CREATE, makes it. Without O_NOFOLLOW a link could be put in
// place between the look and the open; these systems are for development, not for hostile directories.
func openRegular(name string, flags int) (*os.File, error) {
	if err := refuseSpecial("open", name); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, flags, fileMode)
	if err != nil {
		return nil, err
	}
	return checkRegular(f)
}

// refuseSpecial fails if name exists and is no regular file.
func refuseSpecial(op, name string) error {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: op, Path: name, Err: ErrNotRegular}
	}
	return nil
}

func (osFS) Remove(name string) error {
	if err := refuseSpecial("remove", name); err != nil {
		return err
	}
	return os.Remove(name)
}

func (osFS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }

func (osFS) Link(oldname, newname string) error {
	if err := refuseSpecial("link", oldname); err != nil {
		return err
	}
	return os.Link(oldname, newname)
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" { // Windows cannot flush a directory; NTFS logs changes of names by itself.
		err = d.Sync()
	}
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
