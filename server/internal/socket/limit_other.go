//go:build !unix

package socket

// FileLimit is how many files, and connections, the process may have open.
func FileLimit() (n int64, known bool) { return 0, false }
