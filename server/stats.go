package server

import (
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/latency"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/slowlog"
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
	aside       atomic.Int64 // times that a session has left an event loop for a command

	handshakesFailed atomic.Int64 // of TLS
}

// commandStats counts one command. The nanoseconds are those of its execution; in a batch each
// command has an equal share.
type commandStats struct {
	calls, nanoseconds, rejected, failed atomic.Int64
	latency                              atomic.Pointer[latency.Histogram] // nil until the command is called
}

// sessionStats counts what a session does until it is added to the server's counters: once for a
// run of equal commands, not for each. Pipelines are such runs, and counters that all cores share
// are expensive to touch.
type sessionStats struct {
	command                     *command.Command
	calls, failed, hits, misses int64
	took                        time.Duration
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
// LIST.
func (s *Session) flushStats() {
	t := &s.stats
	if t.command == nil {
		return
	}
	stats := &s.server.commands[t.command.Index]
	stats.calls.Add(t.calls)
	stats.failed.Add(t.failed)
	stats.nanoseconds.Add(int64(t.took))
	if t.calls > 0 {
		stats.noteLatency(s.server, t.took/time.Duration(t.calls), t.calls)
	}
	if t.hits > 0 {
		s.server.counters.hits.Add(t.hits)
	}
	if t.misses > 0 {
		s.server.counters.misses.Add(t.misses)
	}
	s.client.noteCommand(s, t.command)
	*t = sessionStats{}
}

// noteLatency counts executions that took so long each, on the average of those that were timed together.
func (c *commandStats) noteLatency(v *Server, each time.Duration, calls int64) {
	if v.tunables.noLatency.Load() {
		return
	}
	h := c.latency.Load()
	if h == nil { // a command that is called has one, made once
		c.latency.CompareAndSwap(nil, new(latency.Histogram))
		h = c.latency.Load()
		if h == nil {
			return // CONFIG RESETSTAT came in between
		}
	}
	h.Note(each, calls)
}

// countRead counts a read as a hit or a miss by its reply: a null, a zero or an empty aggregate is
// a miss. Redis counts keys that do not exist, which costs a second search of the key; for caches it
// makes no difference.
func (t *sessionStats) countRead(reply []byte) {
	switch hit, miss := readOutcome(reply); {
	case hit:
		t.hits++
	case miss:
		t.misses++
	}
}

// readOutcome is what countRead counts.
func readOutcome(reply []byte) (hit, miss bool) {
	if len(reply) < 3 {
		return false, false
	}
	miss = reply[0] == '_' || reply[1] == '-' || reply[1] == '0' && reply[2] == '\r'
	return !miss, miss
}

// countRequest counts a request of a batch that has been committed.
func (s *Session) countRequest(r *request, took time.Duration) {
	t := s.statsFor(r.command)
	t.calls++
	t.took += took
	switch o := &r.outcome; {
	case o.hit:
		t.hits++
	case o.miss:
		t.misses++
	case o.failed:
		t.failed++
		if o.refusal != "" {
			s.server.countError(o.refusal)
		}
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
		s.latency.Store(nil)
	}
	v.mu.Lock()
	clear(v.errors)
	v.mu.Unlock()
	v.rateMu.Lock()
	v.rateSince, v.rateCount = time.Now(), 0
	v.rateMu.Unlock()
}

// startTimer is the moment from which an execution counts, the zero time if executions are not
// timed.
func (v *Server) startTimer() (start time.Time) {
	if v.tunables.slowerThan.Load() >= 0 || v.tunables.spikeMs.Load() > 0 {
		start = time.Now()
	}
	return start
}

// elapsed is the time since start; none if executions are not timed.
func elapsed(start time.Time) (took time.Duration) {
	if !start.IsZero() {
		took = time.Since(start)
	}
	return took
}

// noteSlow notes an execution that took long. more is how many commands ran with this one and
// cannot be separated from it. With the log and spikes switched off it costs one comparison, and no
// clock is read.
func (s *Session) noteSlow(took time.Duration, cmd *command.Command, args [][]byte, more int) {
	if took == 0 {
		return
	}
	v := s.server
	limit := v.tunables.slowerThan.Load()
	if least := v.tunables.spikeMs.Load(); least > 0 && took >= time.Duration(least)*time.Millisecond {
		event := "command"
		if cmd.Flags&command.Fast != 0 {
			event = "fast-command"
		}
		v.spikes.Add(event, time.Now(), took.Milliseconds())
	}
	if cmd.Flags&command.SkipSlowlog != 0 || limit < 0 || took < time.Duration(limit)*time.Microsecond {
		return
	}
	v.slowLog.Add(slowlog.Entry{
		Took: took, Args: slowlog.Args(redact.Args(cmd, args), more), From: s.client.remote, Name: *s.client.name.Load(),
	})
}
