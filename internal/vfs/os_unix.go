//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// call runs fn with the descriptor from which to look up at.rel.
func (at spot) call(fn func(dir int) error) error {
	again := func(dir int) error { return retryErr(func() error { return fn(dir) }) }
	if at.dir == nil {
		return again(unix.AT_FDCWD)
	}
	return control(at.dir.handle, again)
}

// callBoth is call for two names.
func callBoth(op string, from osFS, oldname string, to osFS, newname string, fn func(olddir int, a spot, newdir int, b spot) error) error {
	a, b, err := twoSpots(op, from, oldname, to, newname)
	if err != nil {
		return err
	}
	err = a.call(func(olddir int) error {
		return b.call(func(newdir int) error { return fn(olddir, a, newdir, b) })
	})
	if err != nil {
		return &os.LinkError{Op: op, Old: oldname, New: newname, Err: err}
	}
	return nil
}

// openRegular opens a file if it is a regular one or, with O_CREATE, makes it.
func openRegular(at spot, flags int) (*os.File, error) {
	// O_NONBLOCK keeps the open of a pipe from waiting for its other end; a regular file does not heed it. Not
	// os.Root.OpenFile:
	// that one follows links within the directory.
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd := -1
	err := at.call(func(dir int) (err error) {
		fd, err = unix.Openat(dir, at.rel, flags, fileMode)
		return err
	})
	if err == unix.ELOOP || err == unix.EMLINK { // The latter is FreeBSD's word for a link met with O_NOFOLLOW.
		err = ErrNotRegular
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: at.name, Err: err}
	}
	// Back to blocking before the os package sees it: it would try to put a non-blocking descriptor into its poller.
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "open", Path: at.name, Err: err}
	}
	return checkRegular(os.NewFile(uintptr(fd), at.name))
}

// directoryFlags has the system refuse anything but a directory, without waiting for the other end of a
// pipe.
const directoryFlags = unix.O_RDONLY | unix.O_DIRECTORY

func openDir(name string) (*os.File, error) { return os.OpenFile(name, directoryFlags, 0) }

// openRoot takes a handle of a directory. With a slash at the end a pipe is not waited for.
func openRoot(dir string) (*os.Root, error) { return os.OpenRoot(dir + "/") }

// isStale is what a server of files says of a handle that it knows nothing of any more.
func isStale(err error) bool { return errors.Is(err, unix.ESTALE) }

// hasAnyName goes by the number of names that the system counts.
func hasAnyName(f *os.File) bool {
	var st unix.Stat_t
	err := control(f, func(fd int) error { return retryErr(func() error { return unix.Fstat(fd, &st) }) })
	return err != nil || st.Nlink > 0
}

func (o osFS) Remove(name string) error {
	// Not os.Remove: that one falls back to removing an empty directory.
	return o.unlink(name, 0)
}

func (o osFS) RemoveDir(dir string) error { return o.unlink(dir, unix.AT_REMOVEDIR) }

func (o osFS) unlink(name string, flags int) error {
	at, err := o.at("remove", name)
	if err != nil {
		return err
	}
	if err := at.call(func(dir int) error { return unix.Unlinkat(dir, at.rel, flags) }); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

func (o osFS) Rename(oldname, newname string) error { return o.rename(oldname, newname, "") }

// A slash after it makes the system refuse anything but a directory.
func (o osFS) RenameDir(oldname, newname string) error { return o.rename(oldname, newname, "/") }

func (o osFS) rename(oldname, newname, end string) error {
	return callBoth("rename", o, oldname, o, newname, func(olddir int, a spot, newdir int, b spot) error {
		return unix.Renameat(olddir, a.rel+end, newdir, b.rel)
	})
}

func (o osFS) Link(oldname, newname string) error { return linkSpots(o, oldname, o, newname) }

func linkSpots(from osFS, oldname string, to osFS, newname string) error {
	// linkat without AT_SYMLINK_FOLLOW never follows a symbolic link; what plain link does differs between systems.
	return callBoth("link", from, oldname, to, newname, func(olddir int, a spot, newdir int, b spot) error {
		return unix.Linkat(olddir, a.rel, newdir, b.rel, 0)
	})
}

// cannotLink is the part of CannotLink that is the operating system's.
func cannotLink(err error) bool { return errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EMLINK) }

func (o osFS) SyncDir(dir string) error {
	at, err := o.at("open", dir)
	if err != nil {
		return err
	}
	// A handle for each sync: of two syncs of one handle at a time only one gets a failure.
	d, err := at.openDir()
	if err != nil {
		return err
	}
	err = d.Sync()
	if pe, ok := err.(*fs.PathError); ok && pe.Err == syscall.EINVAL {
		err = nil // A file system that knows no sync of directories (SMB) says so; there is nothing else one could do.
	}
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// Map implements [Mapper].
func (f *osFile) Map(length int) (mapping []byte, err error) {
	err = control(f.f, func(fd int) (err error) {
		mapping, err = unix.Mmap(fd, 0, length, unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "mmap", Path: f.f.Name(), Err: err}
	}
	return mapping, nil
}

// Unmap implements [Mapper].
func (f *osFile) Unmap(mapping []byte) error {
	if err := unix.Munmap(mapping); err != nil {
		return &fs.PathError{Op: "munmap", Path: f.f.Name(), Err: err}
	}
	return nil
}

// control runs fn with the descriptor of f held open.
func control(f *os.File, fn func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	if conn.Control(func(fd uintptr) { ferr = fn(int(fd)) }) != nil {
		return fs.ErrClosed // It fails for nothing else, and has an error of its own for that.
	}
	return ferr
}

// retry repeats a call that a signal interrupted. The runtime preempts goroutines with signals, so any call may be hit;
// most file systems never report it, network ones and FUSE do.
func retry[T any](call func() (T, error)) (T, error) {
	for {
		v, err := call()
		if err != unix.EINTR {
			return v, err
		}
	}
}

func retryErr(call func() error) error {
	_, err := retry(func() (struct{}, error) { return struct{}{}, call() })
	return err
}
