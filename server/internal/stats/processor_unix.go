//go:build unix

package stats

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is the time that this process has used.
func processorTime() (user, system time.Duration, known bool) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, 0, false
	}
	return time.Duration(usage.Utime.Nano()), time.Duration(usage.Stime.Nano()), true
}
