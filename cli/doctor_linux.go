package cli

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystemName names the usual ones, by the numbers of statfs(2). ZFS is not in the kernel's list, so its number is
// here. ext2 and ext3 have ext4's.
func fileSystemName(st *unix.Statfs_t) string {
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs",
		unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smb", unix.CIFS_SUPER_MAGIC: "cifs", unix.FUSE_SUPER_MAGIC: "fuse", unix.OVERLAYFS_SUPER_MAGIC: "overlay",
		unix.F2FS_SUPER_MAGIC: "f2fs", unix.V9FS_MAGIC: "9p", 0x2fc12fc1: "zfs",
	}
	if name, ok := names[int64(st.Type)]; ok {
		return name
	}
	return fmt.Sprintf("of type %#x", int64(st.Type))
}
