package shared

import (
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/slowlog"
)

// StartTimer is the moment from which an execution counts, the zero time if executions are not
// timed.
func (v *State) StartTimer() (start time.Time) {
	if v.Tunables.slowerThan.Load() >= 0 || v.Tunables.SpikeMs.Load() > 0 {
		start = time.Now()
	}
	return start
}

// Elapsed is the time since start; none if executions are not timed.
func Elapsed(start time.Time) (took time.Duration) {
	if !start.IsZero() {
		took = time.Since(start)
	}
	return took
}

// NoteSlow notes an execution that took long. more is how many commands ran with this one and
// cannot be separated from it. With the log and spikes switched off it costs one comparison, and no
// clock is read.
func (v *State) NoteSlow(from *clients.Client, took time.Duration, cmd *command.Command, args [][]byte, more int) {
	if took == 0 || from.Unnoted {
		return
	}
	limit := v.Tunables.slowerThan.Load()
	if least := v.Tunables.SpikeMs.Load(); least > 0 && took >= time.Duration(least)*time.Millisecond {
		event := "command"
		if cmd.Flags&command.Fast != 0 {
			event = "fast-command"
		}
		v.Spikes.Add(event, time.Now(), took.Milliseconds())
	}
	if cmd.Flags&command.SkipSlowlog != 0 || limit < 0 || took < time.Duration(limit)*time.Microsecond {
		return
	}
	v.SlowLog.Add(slowlog.Entry{
		Took: took, Args: slowlog.Args(redact.Args(cmd, args), more), From: from.Remote, Name: *from.Name.Load(),
	})
}

// NoteLarge notes a command if its arguments, or the reply, have so many bytes that COMMANDLOG is to have it.
func (v *State) NoteLarge(from *clients.Client, cmd *command.Command, args [][]byte, reply int) {
	request := 0
	for _, arg := range args {
		request += len(arg)
	}
	requestLimit, replyLimit := v.Tunables.largeRequest.Load(), v.Tunables.largeReply.Load()
	largeRequest, largeReply := uint64(request) >= uint64(requestLimit), uint64(reply) >= uint64(replyLimit) // none is, of -1
	if !largeRequest && !largeReply || cmd.Flags&command.SkipSlowlog != 0 || from.Unnoted {
		return
	}
	e := slowlog.Entry{Args: slowlog.Args(redact.Args(cmd, args), 0), From: from.Remote, Name: *from.Name.Load()}
	if largeRequest {
		e.Bytes = request
		v.LargeRequests.Add(e)
	}
	if largeReply {
		e.Bytes = reply
		v.LargeReplies.Add(e)
	}
}
