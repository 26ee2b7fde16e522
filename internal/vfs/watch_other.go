//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package vfs

// watch reports nothing. On Windows a directory in which files are open cannot be moved or removed.
func (o osHeld) watch(string, func()) (stop func()) { return func() {} }
