package server

import (
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/slowlog"
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
	if s.client.unnoted {
		*t = sessionStats{}
		return
	}
	stats := &s.server.counters.Commands[t.command.Index]
	stats.Calls.Add(t.calls)
	stats.Failed.Add(t.failed)
	stats.Nanoseconds.Add(int64(t.took))
	if t.calls > 0 {
		s.server.counters.NoteLatency(stats, t.took/time.Duration(t.calls), t.calls)
	}
	if t.hits > 0 {
		s.server.counters.Hits.Add(t.hits)
	}
	if t.misses > 0 {
		s.server.counters.Misses.Add(t.misses)
	}
	s.client.noteCommand(s, t.command)
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
func (v *Server) noteSlow(from *client, took time.Duration, cmd *command.Command, args [][]byte, more int) {
	if took == 0 || from.unnoted {
		return
	}
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
		Took: took, Args: slowlog.Args(redact.Args(cmd, args), more), From: from.remote, Name: *from.name.Load(),
	})
}
