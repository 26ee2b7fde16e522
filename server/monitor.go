package server

import (
	"fmt"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/redact"
)

// feedMonitors shows a command to the monitors, after it has run, as Redis does. Commands for
// operators are not shown: they may carry secrets. While no one watches it costs one atomic load.
// The line has the time, the database and the address as Redis prints them; it is formatted once
// for all who watch, and goes the way of published messages: a slow watcher is disconnected and
// slows no one down.
func (s *Session) feedMonitors(cmd *command.Command, args [][]byte) {
	s.feedMonitorsFrom(s.client.remote, cmd, args)
}

// feedMonitorsFrom is feedMonitors for a command that comes from elsewhere, such as a script.
func (s *Session) feedMonitorsFrom(from string, cmd *command.Command, args [][]byte) {
	v := s.server
	if !v.hub.Monitored() || cmd.Flags&(command.Admin|command.SkipMonitor) != 0 {
		return
	}
	now := time.Now()
	line := fmt.Appendf(nil, "%d.%06d [%d %s]", now.Unix(), now.Nanosecond()/1000, s.namespace, from)
	for _, arg := range redact.Args(cmd, args) {
		line = append(line, ' ')
		line = resp.AppendQuoted(line, arg)
	}
	v.hub.Publish(pubsub.Message{Kind: pubsub.Commands, Payload: string(line)}, nil)
}
