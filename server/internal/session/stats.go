package session

import (
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/stats"
)

// INFO is read rarely and commands are run all the time, so counting is arranged for the latter: a
// session counts for itself, without atomics, and adds its counts to the shared ones when the
// command changes or the input is used up. INFO and CLIENT LIST are therefore behind by what the
// sessions have not added yet, which is never more than one run of equal commands.

// sessionStats counts what a session does until it is added to the server's counters: once for a
// run of equal commands, not for each. Pipelines are such runs, and counters that all cores share
// are expensive to touch.
type sessionStats struct {
	command                     *command.Command
	calls, failed, hits, misses int64
	took                        time.Duration
}

// counting is what a session counts.
type counting struct {
	session *Session
	since   time.Time // when the command began, or the batch
	stats   sessionStats
}

// of prepares the counts for another execution of a command. A change of the command flushes
// the counts of the one before.
func (c *counting) of(cmd *command.Command) *sessionStats {
	if c.stats.command != cmd {
		c.flush()
		c.stats.command = cmd
	}
	return &c.stats
}

// flush adds the counts to the server's counters, and updates the session's place in CLIENT
// LIST.
func (c *counting) flush() {
	s := c.session
	t := &c.stats
	if t.command == nil {
		return
	}
	if s.client.Unnoted {
		*t = sessionStats{}
		return
	}
	stats := &s.server.Counters.Commands[t.command.Index]
	stats.Calls.Add(t.calls)
	stats.Failed.Add(t.failed)
	stats.Nanoseconds.Add(int64(t.took))
	if t.calls > 0 {
		s.server.Counters.NoteLatency(stats, t.took/time.Duration(t.calls), t.calls)
	}
	if t.hits > 0 {
		s.server.Counters.Hits.Add(t.hits)
	}
	if t.misses > 0 {
		s.server.Counters.Misses.Add(t.misses)
	}
	queued := -1
	if s.multi.queue != nil {
		queued = s.multi.queue.requests.Len()
	}
	s.client.NoteCommand(t.command, c.since, s.Namespace(), s.out.Version(), queued)
	*t = sessionStats{}
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

// readOutcome is what countRead counts, by the first bytes of a reply in either version: "_" and a length of -1 are null,
// a 0 is a count or an empty aggregate. What is too short to tell is neither.
func readOutcome(reply []byte) (hit, miss bool) {
	if len(reply) < 3 {
		return false, false
	}
	miss = reply[0] == '_' || reply[1] == '-' || reply[1] == '0' && reply[2] == '\r'
	return !miss, miss
}

// countRequest counts a request of a batch that has been committed.
func (t *sessionStats) countRequest(r *request, took time.Duration, counters *stats.Counters) {
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
			counters.CountError(o.refusal)
		}
	}
}
