package server

import (
	"fmt"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

var monitorCommand = &Command{
	Name: "monitor", Arity: 1, Flags: Admin | NoScript | Loading | Stale, Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Shows each command that the server executes, until the connection ends or is reset.", run: onSession(monitorRun),
}

func monitorRun(s *Session, c *call) error {
	if c.queued {
		return replyError("ERR MONITOR isn't allowed for DENY BLOCKING client")
	}
	s.server.hub.subscribe(s, toCommands, "")
	return c.ok()
}

// feedMonitors shows a command to those who watch, after it has run, as Redis does. Those for operators may carry secrets.
func (s *Session) feedMonitors(command *Command, args [][]byte) {
	v := s.server
	if v.hub.monitors.Load() == 0 || command.Flags&(Admin|SkipMonitor) != 0 {
		return
	}
	now := time.Now()
	line := fmt.Appendf(nil, "%d.%06d [%d %s]", now.Unix(), now.Nanosecond()/1000, s.namespace, s.client.remote)
	for _, arg := range args {
		line = append(line, ' ')
		line = resp.AppendQuoted(line, arg)
	}
	v.hub.publish(message{to: toCommands, payload: string(line)})
}
