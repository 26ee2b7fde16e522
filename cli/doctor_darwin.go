package cli

import "golang.org/x/sys/unix"

// fileSystemName is the name that the kernel has for it.
func fileSystemName(st *unix.Statfs_t) string { return unix.ByteSliceToString(st.Fstypename[:]) }
