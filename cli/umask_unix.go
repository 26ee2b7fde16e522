//go:build unix

package cli

import "syscall"

// withPrivateFiles runs fn while new files are for their owner alone, and not executable. It is for the start of the
// program: the mask is the process's, and files that other goroutines make meanwhile get it too.
func withPrivateFiles(fn func() error) error {
	defer syscall.Umask(syscall.Umask(0o177))
	return fn()
}
