package server

import (
	"math"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
)

// patience is how long a session tries before it takes a script that lasts for what holds the locks, and not one of the
// commands that come and go meanwhile.
const patience = 250 * time.Millisecond

// beginBesideScript is begin while scripts run: see scripts.Shared.Begin. It is never called in an event loop, for it
// waits.
func (s *Session) beginBesideScript(write bool, keys []string) (*db.Tx, error) {
	script := s.call.Command != nil && s.call.Command.Flags&command.RunsScript != 0
	start := time.Now()
	return s.scripts.Begin(s.host.Store, write, keys, script, func() error { return s.mayWait(time.Since(start)) })
}

// mayWait is why a session that has waited for locks should not wait any longer, if it should not: a script holds some
// for too long, or the client has left.
func (s *Session) mayWait(waited time.Duration) error {
	v := s.server
	if threshold := time.Duration(min(v.Tunables.BusyMs.Load(), int64(math.MaxInt64/time.Millisecond))) * time.Millisecond; threshold > 0 && waited >= patience {
		if err := s.scripts.Runs.Overdue(threshold); err != nil {
			return err
		}
	}
	return s.interrupted()
}
