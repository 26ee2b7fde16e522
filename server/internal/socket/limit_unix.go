//go:build unix

package socket

import "syscall"

// FileLimit is how many files, and connections, the process may have open.
func FileLimit() (n int64, known bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return int64(min(uint64(limit.Cur), 1<<40)), true
}
