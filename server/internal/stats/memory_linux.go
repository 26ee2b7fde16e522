package stats

import "golang.org/x/sys/unix"

// systemMemory is the memory of the machine in bytes, 0 if it is unknown.
func systemMemory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}
