//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package vfs

import (
	"errors"
	"os"
)

// lockFile fails: without a lock that dies with its process two writers could destroy a store.
func lockFile(*os.File) error { return errors.ErrUnsupported }
