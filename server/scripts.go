package server

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/compiled"
	"github.com/stavedb/stave/server/script"
)

// scripts is what the sessions of a server share about scripts: the compiled ones by their SHA-1, and the runs that
// last.
type scripts struct {
	engine *script.Engine
	long   atomic.Int64 // runs that last: see scriptRun.beLong

	cache compiled.Cache

	mu   sync.Mutex              // guards runs
	runs map[*scriptRun]struct{} // that last
}

func (t *scripts) init() {
	t.engine = script.NewEngine(RedisVersion)
	t.cache.Init(func(word string) bool { cmd := Lookup(word); return cmd != nil && cmd.IsWrite() })
	t.runs = make(map[*scriptRun]struct{})
}

// addLong makes a run known that lasts, and removeLong ends that.
func (t *scripts) addLong(r *scriptRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs[r] = struct{}{}
	t.long.Store(int64(len(t.runs)))
}

func (t *scripts) removeLong(r *scriptRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.runs, r)
	t.long.Store(int64(len(t.runs)))
}

// kill stops the runs of scripts, or of functions, that have written nothing. It is refused if there are none.
func (t *scripts) kill(functions bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	wrote, killed, others := false, false, false
	for r := range t.runs {
		if r.isFunction != functions {
			others = true
			continue
		}
		if r.wrote.Load() {
			wrote = true
			continue
		}
		r.run.Stop(script.ErrKilled)
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

// longest gives fn the run of a function that has lasted longest, which does not end before fn returns; nil if none lasts.
func (t *scripts) longest(fn func(*scriptRun)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first *scriptRun
	for r := range t.runs {
		if r.isFunction && (first == nil || r.started.Before(first.started)) {
			first = r
		}
	}
	fn(first)
}

// overdue returns the refusal of what needs a lock that a run holds for longer than busy-reply-threshold allows; nil if none does.
func (t *scripts) overdue(threshold time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.runs {
		if r.locking.Load() && time.Since(r.started) > threshold {
			return errBusyWith(r.isFunction)
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
	errNoScript command.Error = "NOSCRIPT No matching script. Please use EVAL."
)

// beginPoll is how often a session tries to begin while a script lasts.
const beginPoll = time.Millisecond

// beginBesideScript is begin while a script lasts, which may hold the locks that are needed. The session tries again
// and again, instead of waiting for the locks, so that it can answer BUSY once the script takes too long. Redis
// answers that to every command; here those that need none of the script's locks are not concerned.
func (s *Session) beginBesideScript(write bool, keys []string) (*db.Tx, error) {
	v := s.server
	for {
		tx, ok, err := s.host.Store.TryBegin(write, keys...)
		if err != nil || ok {
			return tx, err
		}
		threshold := time.Duration(min(v.tunables.busyMs.Load(), int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
		switch {
		case v.scripts.long.Load() == 0:
			return s.host.Store.Begin(write, keys...)
		case threshold > 0:
			if err := v.scripts.overdue(threshold); err != nil {
				return nil, err
			}
		}
		if err := s.interrupted(); err != nil {
			return nil, err
		}
		time.Sleep(beginPoll)
	}
}
