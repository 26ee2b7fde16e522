//go:build unix

package server

import (
	"fmt"
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

// infoCPU has the processor time of this process. There are no children, and no thread that is the main one.
func (v *Server) infoCPU(w *infoWriter) {
	user, system, known := processorTime()
	if !known {
		return // INFO then lacks the section's fields, which says it best
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }
	w.fields("used_cpu_sys", seconds(system), "used_cpu_user", seconds(user), "used_cpu_sys_children", "0.000000", "used_cpu_user_children", "0.000000",
		"used_cpu_sys_main_thread", seconds(system), "used_cpu_user_main_thread", seconds(user))
}
