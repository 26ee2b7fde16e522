//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openRegular opens name if it is a regular file or, with O_CREATE, makes it.
func openRegular(name string, flags int) (*os.File, error) {
	// O_NONBLOCK keeps the open of a pipe from waiting for its other end; a regular file does not heed it.
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd, err := retry(func() (int, error) { return unix.Open(name, flags, fileMode) })
	if err == unix.ELOOP || err == unix.EMLINK { // The latter is FreeBSD's word for a link met with O_NOFOLLOW.
		err = ErrNotRegular
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	// Back to blocking before the os package sees it: it would try to put a non-blocking descriptor into its poller.
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return checkRegular(os.NewFile(uintptr(fd), name))
}

func (osFS) Remove(name string) error {
	// Not os.Remove: that one falls back to removing an empty directory.
	if err := retryErr(func() error { return unix.Unlink(name) }); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

func (osFS) Rename(oldname, newname string) error {
	if err := retryErr(func() error { return unix.Rename(oldname, newname) }); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	return nil
}

func (osFS) Link(oldname, newname string) error {
	// linkat without AT_SYMLINK_FOLLOW never follows a symbolic link; what plain link does differs between systems.
	err := retryErr(func() error { return unix.Linkat(unix.AT_FDCWD, oldname, unix.AT_FDCWD, newname, 0) })
	if err != nil {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: err}
	}
	return nil
}

func (osFS) RenameDir(oldname, newname string) error {
	// A slash behind it makes the system refuse what is no directory.
	if err := retryErr(func() error { return unix.Rename(oldname+"/", newname) }); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	return nil
}

func (osFS) RemoveDir(dir string) error {
	if err := retryErr(func() error { return unix.Rmdir(dir) }); err != nil {
		return &fs.PathError{Op: "remove", Path: dir, Err: err}
	}
	return nil
}

// cannotLink is the part of CannotLink that is the operating system's.
func cannotLink(err error) bool { return errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EMLINK) }

func (osFS) SyncDir(dir string) error {
	fd, err := retry(func() (int, error) { return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	d := os.NewFile(uintptr(fd), dir)
	err = d.Sync()
	if pe, ok := err.(*fs.PathError); ok && pe.Err == syscall.EINVAL {
		err = nil // A file system that knows no sync of directories (SMB) says so; there is nothing else one could do.
	}
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// lockFile takes a flock: it belongs to the open file description, so two opens within one process exclude each other as
// two processes do, and the kernel drops it when the process dies. POSIX record locks would do neither.
func lockFile(f *os.File) error {
	err := control(f, func(fd int) error {
		return retryErr(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	})
	if err == unix.EWOULDBLOCK {
		return ErrLocked
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
	if err := conn.Control(func(fd uintptr) { ferr = fn(int(fd)) }); err != nil {
		return err
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
