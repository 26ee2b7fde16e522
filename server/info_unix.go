//go:build unix

package server

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// infoCPU has the processor time of this process.
func (v *Server) infoCPU(w *infoWriter) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return // INFO then lacks the section's fields, which says it best
	}
	seconds := func(t unix.Timeval) string {
		return fmt.Sprintf("%.6f", float64(t.Sec)+float64(t.Usec)/1e6)
	}
	w.field("used_cpu_sys", seconds(usage.Stime))
	w.field("used_cpu_user", seconds(usage.Utime))
}
