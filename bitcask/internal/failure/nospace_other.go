//go:build !windows

package failure

// diskFull knows the system's own errors for a full disk, where these are not syscall.ENOSPC.
func diskFull(error) bool { return false }
