//go:build linux || darwin

package vfs

import (
	"math"

	"golang.org/x/sys/unix"
)

// Space implements [Spacer].
func (o osFS) Space(dir string) (free int64, ok bool) {
	var st unix.Statfs_t
	at, err := o.at("stat", dir)
	switch {
	case err != nil:
	case at.dir != nil:
		err = control(at.dir.handle, func(fd int) error { return unix.Fstatfs(fd, &st) })
	default:
		err = unix.Statfs(dir, &st)
	}
	if err != nil || st.Bsize <= 0 || st.Blocks == 0 { // some file systems have no size
		return 0, false
	}
	unit := uint64(st.Bsize)
	return int64(min(st.Bavail, math.MaxInt64/unit) * unit), true
}
