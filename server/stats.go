package server

import (
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/command"
)

// INFO is read rarely and commands are run all the time, so counting is arranged for the latter: a
// session counts for itself, without atomics, and adds its counts to the shared ones when the
// command changes or the input is used up. INFO and CLIENT LIST are therefore behind by what the
// sessions have not added yet, which is never more than one run of equal commands.

// counters are the sums that INFO shows.
type counters struct {
	connections atomic.Int64 // accepted since the start
	rejected    atomic.Int64 // refused because of MaxClients
	evicted     atomic.Int64 // closed because of ClientMemory
	flooded     atomic.Int64 // closed because they did not read their messages
	hits        atomic.Int64 // reads that found something
	misses      atomic.Int64 // reads that found nothing
	panics      atomic.Int64 // commands that panicked
	errors      atomic.Int64 // error replies
	in, out     atomic.Int64 // bytes from and to clients
	reads       atomic.Int64 // read(2) calls that brought something
	writes      atomic.Int64 // write(2) calls
	clientBytes atomic.Int64 // bytes of the buffers of all clients
	blocked     atomic.Int64 // clients that wait in a command
}

// commandStats counts one command. The nanoseconds are those between two flushes of a session's
// counts, so that a pipeline is timed as a whole.
type commandStats struct {
	calls, nanoseconds, rejected, failed atomic.Int64
}

// sessionStats counts what a session does until it is added to the server's counters: once for a
// run of equal commands, not for each. Pipelines are such runs, and counters that all cores share
// are expensive to touch.
type sessionStats struct {
	command                     *command.Command
	calls, failed, hits, misses int64
}

// statsFor prepares the counts for another execution of a command. A change of the command flushes
// the counts of the one before.
func (s *Session) statsFor(cmd *command.Command) *sessionStats {
	if s.stats.command != cmd {
		s.flushStats()
		s.stats.command = cmd
	}
	return &s.stats
}

// flushStats adds the counts to the server's counters, and updates the session's place in CLIENT
// LIST. It reads the clock once for a run of equal commands, not twice for each command.
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

// countRead counts a read as a hit or a miss by its reply: a null, a zero or an empty aggregate is
// a miss. Redis counts keys that do not exist, which costs a second search of the key; for caches it
// makes no difference.
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

// maxErrorCodes bounds the map of error codes: a client can make up codes only where a command
// repeats its arguments, which none does at the start of an error, but a bound costs nothing.
const maxErrorCodes = 128

// countError counts an error reply by its code, the first word of its text. A text without a blank
// is its own code.
func (v *Server) countError(text string) {
	v.counters.errors.Add(1)
	code := text
	for i := 0; i < len(code); i++ {
		if code[i] == ' ' {
			code = code[:i]
			break
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.errors[code]; known || len(v.errors) < maxErrorCodes {
		v.errors[code]++
	}
}

// rate returns the commands executed a second, over the last interval of at least a second that
// ended with a call. The first call after a quiet time therefore shows the average of that time.
// Redis samples ten times a second; here nothing runs while no one asks.
func (v *Server) rate() int64 {
	v.rateMu.Lock()
	defer v.rateMu.Unlock()
	now, count := time.Now(), v.executed()
	if passed := now.Sub(v.rateSince); passed >= time.Second {
		v.rateLast = int64(float64(count-v.rateCount) / passed.Seconds())
		v.rateSince, v.rateCount = now, count
	}
	return v.rateLast
}

// resetStats sets the counters of INFO to zero, except those that describe the present. The
// counters are set one after the other: a command that runs at the same time may be counted in one
// and not in another.
func (v *Server) resetStats() {
	c := &v.counters
	for _, n := range []*atomic.Int64{
		&c.connections, &c.rejected, &c.evicted, &c.flooded, &c.hits, &c.misses, &c.panics, &c.errors, &c.in, &c.out, &c.reads, &c.writes,
	} {
		n.Store(0)
	}
	for i := range v.commands {
		s := &v.commands[i]
		s.calls.Store(0)
		s.nanoseconds.Store(0)
		s.rejected.Store(0)
		s.failed.Store(0)
	}
	v.mu.Lock()
	clear(v.errors)
	v.mu.Unlock()
	v.rateMu.Lock()
	v.rateSince, v.rateCount = time.Now(), 0
	v.rateMu.Unlock()
}
