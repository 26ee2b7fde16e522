package admin

import (
	"time"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
)

// parseMilliseconds returns argument i as a time-out, 0 for no end. WAIT, WAITAOF and CLIENT PAUSE give theirs in
// milliseconds; the commands that pop give seconds with a fraction, which package command reads.
func parseMilliseconds(c *command.Call, i int) (time.Duration, error) {
	n, ok := number.ParseInt(c.Arg(i))
	switch {
	case !ok:
		return 0, command.Error("ERR timeout is not an integer or out of range")
	case n < 0:
		return 0, command.Error("ERR timeout is negative")
	}
	return time.Duration(min(n, int64(maxTimeout/time.Millisecond))) * time.Millisecond, nil
}

// maxTimeout bounds a time-out so that a moment can be computed from it.
const maxTimeout = 100 * 365 * 24 * time.Hour

// Errors of WAIT and WAITAOF at a replica, as Redis has them.
const (
	errWaitAtReplica command.Error = "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured " +
		"to be writable (which is not the default) writes to replicas are just local and are not propagated."
	errWaitaofAtReplica command.Error = "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local " +
		"and are not propagated."
)

// waitCommand is WAIT: how many replicas have acknowledged all that has been written so far, by whoever. Within EXEC it does
// not wait.
func waitCommand(a *Caller, c *command.Call) error {
	if a.State.Following.IsReplica() {
		return errWaitAtReplica
	}
	replicas, err := c.Args.ParseInt(1)
	if err != nil {
		return err
	}
	timeout, err := parseMilliseconds(c, 2)
	if err != nil {
		return err
	}
	stream := a.State.Replicas.Stream
	offset := stream.Committed()
	count := func() int { return stream.Acknowledged(offset) }
	if n := count(); int64(n) >= replicas || c.Queued {
		return c.Int(n, nil)
	}
	return a.awaitReplicas(c, count, replicas, timeout, func(c *command.Call) { c.Out.Int(int64(count())) })
}

// awaitReplicas lets the session wait until so many replicas count, or the time is over; reply replies then.
func (a *Caller) awaitReplicas(c *command.Call, count func() int, replicas int64, timeout time.Duration, reply func(*command.Call)) error {
	forget := func() {}
	err := a.Wait(c, timeout, func(c *command.Call) {
		forget()
		reply(c)
	})
	client := a.Client
	if wait := client.Wait.Load(); wait != nil {
		forget = a.State.Replicas.Await(func() bool { return int64(count()) >= replicas }, func() { client.EndThis(wait, clients.TimedOut) },
			func() bool { return wait.Poll() != clients.NotEnded })
	}
	return err
}

// waitaofCommand is WAITAOF. What this server has written is on disk when it replies, but within EXEC, whose
// commit is still to come. The sync is made here, whatever the store's sync mode, and also if numlocal is 0: the
// reply says 1 for this server. It leaves the event loop for that. Of the replicas those count that have said that it is
// on their disks too, which Redis does since 7.2; when it gets there is up to their sync mode.
func waitaofCommand(a *Caller, c *command.Call) error {
	local, ok := number.ParseInt(c.Arg(1))
	if !ok || local < 0 || local > 1 {
		if !ok {
			return command.ErrNotInteger
		}
		return command.Error("ERR value is out of range, value must between 0 and 1")
	}
	replicas, ok := number.ParseInt(c.Arg(2))
	if !ok || replicas < 0 {
		return command.Error("ERR value is out of range, must be positive")
	}
	timeout, err := parseMilliseconds(c, 3)
	if err != nil {
		return err
	}
	if a.State.Following.IsReplica() {
		return errWaitaofAtReplica
	}
	stream := a.State.Replicas.Stream
	offset := stream.Committed()
	count := func() int { return stream.OnDisk(offset) }
	if c.Queued {
		return c.Reply([]any{0, count()})
	}
	if err := a.State.Store.Sync(); err != nil {
		return err
	}
	if n := count(); int64(n) >= replicas {
		return c.Reply([]any{1, n})
	}
	return a.awaitReplicas(c, count, replicas, timeout, func(c *command.Call) { _ = c.Reply([]any{1, count()}) })
}
