package vfs

import (
	"crypto/sha256"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// bootFile holds the kernel's random number of its life.
const bootFile = "/proc/sys/kernel/random/boot_id"

// BootID implements [Booter]: the kernel's number, the device and the mount. A file system that was detached by force
// and mounted again has lost its unsynced bytes, though the kernel lives on. Since Linux 6.8 a mount has a number that
// is never given twice; before that the number of one that is gone may come back.
func (o osFS) BootID(dir string) BootID {
	boot, err := os.ReadFile(bootFile)
	if err != nil || len(boot) == 0 {
		return BootID{}
	}
	const mountUnique = 0x4000 // STATX_MNT_ID_UNIQUE
	var st unix.Statx_t
	at, err := o.at("stat", dir)
	if err == nil {
		err = at.call(func(from int) error { return unix.Statx(from, at.rel, 0, unix.STATX_MNT_ID|mountUnique, &st) })
	}
	if err != nil || st.Mask&(unix.STATX_MNT_ID|mountUnique) == 0 {
		return BootID{}
	}
	for _, n := range []uint64{uint64(st.Dev_major), uint64(st.Dev_minor), st.Mnt_id} {
		boot = binary.LittleEndian.AppendUint64(boot, n)
	}
	sum := sha256.Sum256(boot)
	return BootID(sum[:16])
}
