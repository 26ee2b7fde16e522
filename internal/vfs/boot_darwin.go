package vfs

import (
	"crypto/sha256"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// BootID implements [Booter]: the number of the kernel's life and the file system.
func (o osFS) BootID(dir string) BootID {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil || boot == "" {
		return BootID{}
	}
	var st unix.Statfs_t
	at, err := o.at("stat", dir)
	if err == nil && at.dir != nil {
		err = control(at.dir.handle, func(fd int) error { return unix.Fstatfs(fd, &st) })
	} else if err == nil {
		err = unix.Statfs(dir, &st)
	}
	if err != nil {
		return BootID{}
	}
	b := []byte(boot)
	for _, n := range st.Fsid.Val {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	sum := sha256.Sum256(b)
	return BootID(sum[:16])
}
