package vfs

import "golang.org/x/sys/unix"

// WriteBack implements [WriteBacker].
func (f *osFile) WriteBack(off, n int64) {
	conn, err := f.f.SyscallConn()
	if err != nil {
		return
	}
	// What fails here, fails in Sync as well, and is reported there.
	_ = conn.Control(func(fd uintptr) { _ = unix.SyncFileRange(int(fd), off, n, unix.SYNC_FILE_RANGE_WRITE) })
}
