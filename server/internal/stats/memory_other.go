//go:build !linux

package stats

// systemMemory is the memory of the machine in bytes, 0 if it is unknown.
func systemMemory() uint64 { return 0 }
