package server

import (
	"time"

	"github.com/stavedb/stave/server/command"
)

// sessionStats counts what a session does until it is added to the server's counters: once for a run of equal commands, not for
// each. Pipelines are such runs, and counters that all cores share are expensive to touch.
type sessionStats struct {
	command                     *command.Command
	calls, failed, hits, misses int64
}

// statsFor prepares the counts for another execution of a command.
func (s *Session) statsFor(cmd *command.Command) *sessionStats {
	if s.stats.command != cmd {
		s.flushStats()
		s.stats.command = cmd
	}
	return &s.stats
}

// flushStats adds the counts to the server's counters, and tells CLIENT LIST where the session is.
func (s *Session) flushStats() {
	t := &s.stats
	if t.command == nil {
		return
	}
	now := time.Now()
	stats := &s.server.commands[t.command.Index]
	stats.calls.Add(t.calls)
	stats.failed.Add(t.failed)
	stats.nanoseconds.Add(int64(now.Sub(s.statsSince)))
	if t.hits > 0 {
		s.server.counters.hits.Add(t.hits)
	}
	if t.misses > 0 {
		s.server.counters.misses.Add(t.misses)
	}
	s.statsSince = now
	s.client.noteCommand(s, t.command)
	*t = sessionStats{}
}

// countRead counts a read as a hit or a miss by its reply: a null, a zero or an empty aggregate is a miss. Redis counts
// keys that do not exist, which costs a second look at the key; for caches it comes to the same.
func (t *sessionStats) countRead(reply []byte) {
	if len(reply) < 3 {
		return
	}
	if reply[0] == '_' || reply[1] == '-' || reply[1] == '0' && reply[2] == '\r' {
		t.misses++
	} else {
		t.hits++
	}
}

// executed is the number of commands executed since the start or CONFIG RESETSTAT.
func (v *Server) executed() (n int64) {
	for i := range v.commands {
		n += v.commands[i].calls.Load()
	}
	return n
}
