package vfs

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockByte is the offset of the one byte that is locked. Windows locks are mandatory: the holder's text at the start of
// the file must stay readable for others.
const lockByte = 1 << 30

func lockFile(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lerr error
	err = conn.Control(func(fd uintptr) {
		at := windows.Overlapped{Offset: lockByte}
		const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
		lerr = windows.LockFileEx(windows.Handle(fd), how, 0, 1, 0, &at)
	})
	if err != nil {
		return err
	}
	if lerr == windows.ERROR_LOCK_VIOLATION {
		return ErrLocked
	}
	return lerr
}
