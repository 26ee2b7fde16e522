package scripting

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/script"
)

// Run is one execution of a script or a function, as others see it once it lasts.
type Run struct {
	Script     script.Run
	Call       *command.Call // of EVAL or FCALL
	IsFunction bool          // of FCALL
	Started    time.Time     // of the attempt
	Locking    atomic.Bool   // it holds locks
	Wrote      atomic.Bool   // a command of it has written
}

// lasted is how long the run has not waited for the locks of others.
func (r *Run) lasted() time.Duration { return time.Since(r.Started) - r.Script.Waited() }

// Runs counts those there are, and knows those that last.
type Runs struct {
	all  atomic.Int64
	long atomic.Int64 // how many last

	mu   sync.Mutex // guards runs
	runs map[*Run]struct{}
}

// Start counts a run, until End.
func (t *Runs) Start() { t.all.Add(1) }

// End ends that.
func (t *Runs) End() { t.all.Add(-1) }

// Any reports whether there is a run, of whatever length.
func (t *Runs) Any() bool { return t.all.Load() > 0 }

// Holding reports whether a run that lasts holds locks.
func (t *Runs) Holding() bool {
	if t.long.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.runs {
		if r.Locking.Load() {
			return true
		}
	}
	return false
}

// Add makes a run known that lasts.
func (t *Runs) Add(r *Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs == nil {
		t.runs = make(map[*Run]struct{})
	}
	t.runs[r] = struct{}{}
	t.long.Store(int64(len(t.runs)))
}

// Remove ends that.
func (t *Runs) Remove(r *Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.runs, r)
	t.long.Store(int64(len(t.runs)))
}

// Each calls fn for each run, which does not end before fn returns.
func (t *Runs) Each(fn func(*Run)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.runs {
		fn(r)
	}
}

// Kill stops the runs of scripts, or of functions, that have written nothing. It is refused if there are none.
func (t *Runs) Kill(functions bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	wrote, killed, others := false, false, false
	for r := range t.runs {
		if r.IsFunction != functions {
			others = true
			continue
		}
		if r.Wrote.Load() {
			wrote = true
			continue
		}
		r.Script.Stop(script.ErrKilled)
		killed = true
	}
	switch {
	case killed:
		return nil
	case wrote:
		return errUnkillable
	case others:
		return errBusyWith(!functions)
	}
	return errNotBusy
}

// longest gives fn the run of a function that has lasted longest, which does not end before fn returns; nil if none
// lasts.
func (t *Runs) longest(fn func(*Run)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first *Run
	for r := range t.runs {
		if r.IsFunction && (first == nil || r.Started.Before(first.Started)) {
			first = r
		}
	}
	fn(first)
}

// Overdue returns the refusal of what needs a lock that a run holds which has lasted longer than busy-reply-threshold
// allows; nil if there is none.
func (t *Runs) Overdue(threshold time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.runs {
		if r.Locking.Load() && r.lasted() > threshold {
			return errBusyWith(r.IsFunction)
		}
	}
	return nil
}

// errBusyWith says what runs.
func errBusyWith(function bool) error {
	if function {
		return errBusyFunction
	}
	return errBusy
}

// The refusals about scripts, in Redis's words.
const (
	errBusy         command.Error = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	errBusyFunction command.Error = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
	errNotBusy      command.Error = "NOTBUSY No scripts in execution right now."
	errUnkillable   command.Error = "UNKILLABLE Sorry the script already executed write commands against the dataset. " +
		"You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
)
