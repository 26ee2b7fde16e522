package scripting

import (
	"sync/atomic"
	"time"
)

// Known is what the runs of a script or a function have shown so far: with which locks the next one begins, and where.
type Known struct {
	Writes  atomic.Bool // its transaction is for writing
	AllKeys atomic.Bool // it touches keys that it does not declare

	apartUntil atomic.Int64 // in nanoseconds since began
}

// apartFor is how long a script runs on its own, outside of event loops and batches, after a run that took long in one
// and was in vain.
const apartFor = time.Second

// began is when the process did, about: the time since then does not change with the clock.
var began = time.Now()

// TookLong notes that a run in an event loop or a batch took long.
func (k *Known) TookLong() { k.apartUntil.Store(int64(time.Since(began) + apartFor)) }

// RunsApart reports whether the next run is to be outside of event loops and batches.
func (k *Known) RunsApart() bool {
	until := k.apartUntil.Load()
	return until != 0 && int64(time.Since(began)) < until
}
