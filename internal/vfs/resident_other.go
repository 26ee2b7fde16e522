//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

// Resident implements [Mapper]: golang.org/x/sys does not have mincore(2) for these systems.
func (f *osFile) Resident([]byte) bool { return true }
