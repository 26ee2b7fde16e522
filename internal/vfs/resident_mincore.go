//go:build linux || darwin

package vfs

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

var pageSize = uintptr(os.Getpagesize())

// Resident implements [Mapper] with mincore(2), which the kernel answers truthfully to a process that may write
// the file.
func (f *osFile) Resident(part []byte) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	end := start + uintptr(len(part))
	start &^= pageSize - 1
	var pages [256]byte
	for start < end {
		n := min((end-start+pageSize-1)/pageSize, uintptr(len(pages)))
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, start, n*pageSize, uintptr(unsafe.Pointer(&pages)))
		if errno != 0 {
			return true // Nothing is known, and a read through the mapping is always right.
		}
		for _, p := range pages[:n] {
			if p&1 == 0 {
				return false
			}
		}
		start += n * pageSize
	}
	return true
}
