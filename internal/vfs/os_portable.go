//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// openRegular opens a file if it is a regular one or, with O_CREATE, makes it. Without O_NOFOLLOW a link could be put
// in place between the look and the open; these systems are for development, not for hostile directories.
func openRegular(at spot, flags int) (*os.File, error) {
	if err := at.refuseSpecial("open"); err != nil {
		return nil, err
	}
	if at.dir == nil {
		f, err := os.OpenFile(at.rel, flags, fileMode)
		if err != nil {
			return nil, err
		}
		return checkRegular(f)
	}
	f, err := at.dir.root.OpenFile(at.rel, flags, fileMode)
	if err != nil {
		return nil, at.named(err)
	}
	return checkRegular(f)
}

const directoryFlags = os.O_RDONLY

func openDir(name string) (*os.File, error) { return os.Open(name) }

func openRoot(dir string) (*os.Root, error) { return os.OpenRoot(dir) }

func isStale(error) bool { return false }

// hasAnyName says yes: Windows removes no name of an open file.
func hasAnyName(*os.File) bool { return true }

// refuseSpecial fails if the name exists and is no regular file.
func (at spot) refuseSpecial(op string) error {
	if info, err := at.lstat(); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: op, Path: at.name, Err: ErrNotRegular}
	}
	return nil
}

// refuseFile fails unless the name is a directory's.
func (at spot) refuseFile(op string) error {
	info, err := at.lstat()
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: op, Path: at.name, Err: syscall.ENOTDIR}
	}
	return err
}

func (o osFS) Remove(name string) error {
	at, err := o.at("remove", name)
	if err == nil {
		err = at.refuseSpecial("remove")
	}
	if err != nil {
		return err
	}
	return at.remove()
}

func (o osFS) RemoveDir(dir string) error {
	at, err := o.at("remove", dir)
	if err == nil {
		err = at.refuseFile("remove")
	}
	if err != nil {
		return err
	}
	return at.remove()
}

func (at spot) remove() error {
	if at.dir == nil {
		return os.Remove(at.rel)
	}
	return at.named(at.dir.root.Remove(at.rel))
}

func (o osFS) Rename(oldname, newname string) error {
	a, b, err := twoSpots("rename", o, oldname, o, newname)
	if err != nil {
		return err
	}
	return renameSpot(a, b)
}

func (o osFS) RenameDir(oldname, newname string) error {
	a, b, err := twoSpots("rename", o, oldname, o, newname)
	if err == nil {
		err = a.refuseFile("rename")
	}
	if err != nil {
		return err
	}
	// Windows replaces no directory, not even an empty one.
	if err := o.RemoveDir(newname); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return renameSpot(a, b)
}

// renameSpot needs both names in one directory that is held, or in none that is.
func renameSpot(a, b spot) error {
	switch {
	case a.dir != b.dir:
		return &os.LinkError{Op: "rename", Old: a.name, New: b.name, Err: errors.ErrUnsupported}
	case a.dir == nil:
		return os.Rename(a.rel, b.rel)
	}
	return a.dir.root.Rename(a.rel, b.rel)
}

func (o osFS) Link(oldname, newname string) error { return linkSpots(o, oldname, o, newname) }

// linkSpots goes by path from one directory to another: where it matters, Windows does not let directories with open
// files move.
func linkSpots(from osFS, oldname string, to osFS, newname string) error {
	a, b, err := twoSpots("link", from, oldname, to, newname)
	if err == nil {
		err = a.refuseSpecial("link")
	}
	switch {
	case err != nil:
		return err
	case a.dir != b.dir || a.dir == nil:
		return os.Link(a.path(), b.path())
	}
	return a.dir.root.Link(a.rel, b.rel)
}

func (at spot) path() string {
	if at.dir == nil {
		return at.rel
	}
	return filepath.Join(at.dir.path, at.rel)
}

// cannotLink is the part of CannotLink that is the operating system's.
func cannotLink(err error) bool {
	const notSameDevice, tooManyLinks = syscall.Errno(17), syscall.Errno(1142) // Of Windows.
	return errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EMLINK) ||
		runtime.GOOS == "windows" && (errors.Is(err, notSameDevice) || errors.Is(err, tooManyLinks))
}

func (o osFS) SyncDir(dir string) error {
	at, err := o.at("open", dir)
	if err != nil {
		return err
	}
	d, err := at.openDir()
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
