//go:build freebsd || netbsd || openbsd || dragonfly

package vfs

// Resident implements [Mapper]: not all of these systems have mincore(2), and none of them runs the tests.
func (f *osFile) Resident([]byte, *ResidentPages) bool { return true }
