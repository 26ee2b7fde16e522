package server

import (
	"math"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
)

// beginBesideScript is begin while scripts run: see scripts.Shared.Begin.
func (s *Session) beginBesideScript(write bool, keys []string) (*db.Tx, error) {
	script := s.call.Command != nil && s.call.Command.Flags&command.RunsScript != 0
	return s.server.scripts.Begin(s.host.Store, write, keys, script, s.mayWait)
}

// mayWait is why a session should not wait for locks any longer, if it should not: a script holds some for too long, or
// the client has left.
func (s *Session) mayWait() error {
	v := s.server
	if threshold := time.Duration(min(v.tunables.busyMs.Load(), int64(math.MaxInt64/time.Millisecond))) * time.Millisecond; threshold > 0 {
		if err := v.scripts.Runs.Overdue(threshold); err != nil {
			return err
		}
	}
	return s.interrupted()
}
