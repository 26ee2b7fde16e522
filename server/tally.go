package server

import "time"

// tally counts what a session does until it is added to the server's counters: once for a run of equal commands, not for
// each. Pipelines are such runs, and counters that all cores share are expensive to touch.
type tally struct {
	command                     *Command
	calls, failed, hits, misses int64
}

// tallyFor prepares the tally for another execution of a command.
func (s *Session) tallyFor(command *Command) *tally {
	if s.tally.command != command {
		s.publish()
		s.tally.command = command
	}
	return &s.tally
}

// publish adds the tally to the server's counters, and tells CLIENT LIST where the session is.
func (s *Session) publish() {
	t := &s.tally
	if t.command == nil {
		return
	}
	now := time.Now()
	stats := &s.server.commands[t.command.index]
	stats.calls.Add(t.calls)
	stats.failed.Add(t.failed)
	stats.nanoseconds.Add(int64(now.Sub(s.clock)))
	if t.hits > 0 {
		s.server.counters.hits.Add(t.hits)
	}
	if t.misses > 0 {
		s.server.counters.misses.Add(t.misses)
	}
	s.clock = now
	s.client.seen(s, t.command)
	*t = tally{}
}

// countRead counts a read as a hit or a miss by its reply: a null, a zero or an empty aggregate is a miss. Redis counts
// keys that do not exist, which costs a second look at the key; for caches it comes to the same.
func (t *tally) countRead(reply []byte) {
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
