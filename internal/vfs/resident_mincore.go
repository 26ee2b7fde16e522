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
func (f *osFile) Resident(part []byte, pages *ResidentPages) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	end := start + uintptr(len(part))
	start &^= pageSize - 1
	var answers [256]byte
	var words [len(ResidentPages{})]uint64
	all := true
	for unit := 0; start < end; {
		n := min((end-start+pageSize-1)/pageSize, uintptr(len(answers)))
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, start, n*pageSize, uintptr(unsafe.Pointer(&answers)))
		if errno != 0 {
			return true // Nothing is known, and a read through the mapping is always right.
		}
		for _, p := range answers[:n] {
			switch resident := p&1 != 0; {
			case !resident && pages == nil:
				return false
			case !resident:
				all = false
			}
			for range pageSize / ResidentUnit {
				if pages != nil && unit < 64*len(words) {
					words[unit/64] |= uint64(p&1) << (unit % 64)
				}
				unit++
			}
		}
		start += n * pageSize
	}
	if !all {
		for i := range words {
			pages[i].Store(words[i])
		}
	}
	return all
}
