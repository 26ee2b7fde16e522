package group

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time of the clock of leases, which counts suspension and is never set: since the machine has booted.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("BUG: group: CLOCK_BOOTTIME: " + err.Error()) // Linux has had it since 2.6.39
	}
	return time.Duration(t.Nano())
}
