package server

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/redact"
)

// feedMonitors shows a command to the monitors, after it has run, as Redis does. Commands for
// operators are not shown: they may carry secrets. While no one watches it costs one atomic load.
// The line is formatted once for all who watch, and goes the way of published messages: a slow watcher is disconnected
// and slows no one down.
func (s *Session) feedMonitors(cmd *command.Command, args [][]byte) {
	if cmd.Flags&(command.Admin|command.SkipMonitor) == 0 {
		s.feedMonitorsFrom(s.client.Remote, cmd, args)
	}
}

// feedMonitorsFrom is feedMonitors for a command that comes from elsewhere, such as a script, whose commands Redis
// shows as those of the client "lua". Secrets in arguments are redacted.
func (s *Session) feedMonitorsFrom(from string, cmd *command.Command, args [][]byte) {
	if s.server.Hub.Monitored() && cmd.Flags&command.Admin == 0 {
		s.server.Hub.Publish(pubsub.Message{Kind: pubsub.Commands, Payload: redact.MonitorLine(s.namespace, from, cmd, args)}, nil)
	}
}

// onScript is onSession for a command that runs a script: it is shown before what the script calls.
func onScript(run func(*Session, *command.Call) error) func(*command.Call) error {
	return onSession(func(s *Session, c *command.Call) error {
		s.feedMonitorsFrom(s.client.Remote, c.Command, c.Args)
		return run(s, c)
	})
}
