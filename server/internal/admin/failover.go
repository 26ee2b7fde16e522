package admin

import (
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/shared"
)

// failoverCommand is FAILOVER. It replies when writes are paused; INFO says how far the rest is. The order of its refusals is
// Redis's.
func failoverCommand(a *Caller, c *command.Call) error {
	if a.State.Member != nil {
		return shared.ErrOfGroup
	}
	if a.State.Options.Cluster {
		return command.Error("ERR FAILOVER not allowed in cluster mode.")
	}
	var r shared.FailoverRequest
	var timeout time.Duration
	var abort bool
	for i := 1; i < len(c.Args); i++ {
		switch {
		case c.Args.Is(i, "timeout") && i+1 < len(c.Args) && timeout == 0:
			n, err := c.Args.ParseInt(i + 1)
			if err != nil {
				return err
			}
			if n < 1 {
				return command.Error("ERR FAILOVER timeout must be greater than 0")
			}
			timeout = time.Duration(min(n, int64(maxTimeout/time.Millisecond))) * time.Millisecond
			i++
		case c.Args.Is(i, "to") && i+2 < len(c.Args) && r.Target.IsZero():
			port, err := c.Args.ParseInt(i + 2)
			if err != nil {
				return err
			}
			r.Target = shared.Master{Host: string(c.Arg(i + 1)), Port: int(port)}
			i += 2
		case c.Args.Is(i, "abort") && len(c.Args) == 2:
			abort = true
		case c.Args.Is(i, "force") && !r.Force:
			r.Force = true
		default:
			return command.ErrSyntax
		}
	}
	if timeout > 0 {
		r.Until = time.Now().Add(timeout)
	}
	return a.unlocked(c, func() error {
		if abort {
			return a.State.Failover.Abort("FAILOVER ABORT")
		}
		return a.State.Failover.Begin(r)
	})
}
