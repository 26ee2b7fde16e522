package shared

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/redact"
)

// FeedMonitors shows a command to the monitors, after it has run, as Redis does. Commands for operators are not shown, and
// secrets in arguments are redacted. from is the client's address, or "lua" for what a script calls. While no one watches
// it costs one atomic load. The line is formatted once for all who watch, and goes the way of published messages: a slow
// watcher is disconnected and slows no one down.
func (v *State) FeedMonitors(namespace int, from string, cmd *command.Command, args [][]byte) {
	if v.Hub.Monitored() && cmd.Flags&command.Admin == 0 {
		v.Hub.Publish(pubsub.Message{Kind: pubsub.Commands, Payload: redact.MonitorLine(namespace, from, cmd, args)}, nil)
	}
}
