//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package vfs

// Watch reports nothing. On Windows a directory in which files are open cannot be moved or removed.
func (o osHeld) Watch(string, func()) (stop func()) { return func() {} }
