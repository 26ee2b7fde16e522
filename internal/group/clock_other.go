//go:build !linux

package group

import "time"

var started = time.Now()

// Now is the time of the clock of leases: since the process has started. Where it does not count suspension, reads of a primary
// that was suspended are up to date only with Options.StrictReads.
func Now() time.Duration { return time.Since(started) }
