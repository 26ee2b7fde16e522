//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"
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

func (osFS) RenameDir(oldname, newname string) error {
	if err := checkDir("rename", oldname); err != nil {
		return err
	}
	// Windows replaces no directory, not even an empty one.
	if err := (osFS{}).RemoveDir(newname); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(oldname, newname)
}

func (osFS) RemoveDir(dir string) error {
	if err := checkDir("remove", dir); err != nil {
		return err
	}
	return os.Remove(dir)
}

// checkDir fails unless name is a directory.
func checkDir(op, name string) error {
	info, err := os.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: op, Path: name, Err: syscall.ENOTDIR}
	}
	return err
}

// cannotLink is the part of CannotLink that is the operating system's.
func cannotLink(err error) bool {
	const notSameDevice, tooManyLinks = syscall.Errno(17), syscall.Errno(1142) // Of Windows.
	return errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EMLINK) ||
		runtime.GOOS == "windows" && (errors.Is(err, notSameDevice) || errors.Is(err, tooManyLinks))
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
