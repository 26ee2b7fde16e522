package admin

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
)

func monitorCommand(of source) *command.Command {
	return &command.Command{
		Name: "monitor", Arity: 1, Flags: command.OfOperator, Group: command.GroupServer, Run: of.on(monitorRun),
	}
}

// monitorRun is MONITOR. From now on the session gets a line for each command of any session. The
// lines arrive like messages, between the replies to what the session itself sends.
func monitorRun(a *Caller, c *command.Call) error {
	if c.Queued {
		return command.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
	}
	a.State.Hub.Subscribe(a.Client.Tracking.Mail, pubsub.Commands, "")
	return c.OK()
}
