//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes a flock: it belongs to the open file description, so two opens within one process exclude each other
// as two processes do, and the kernel drops it when the process dies. POSIX record locks would do neither.
func lockFile(f *os.File) error {
	err := control(f, func(fd int) error {
		return retryErr(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	})
	if err == unix.EWOULDBLOCK {
		return ErrLocked
	}
	return err
}
