package server

import (
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/slowlog"
)

// startTimer is the moment from which an execution counts, the zero time if executions are not
// timed.
func (v *State) startTimer() (start time.Time) {
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
func (v *State) noteSlow(from *client, took time.Duration, cmd *command.Command, args [][]byte, more int) {
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
