package server

import (
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/debug"
	"github.com/stavedb/stave/server/internal/latency"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/slowlog"
)

// Commands that tools ask any Redis for.

var operatorCommands = []*command.Command{
	slowlog.Command(func(c *command.Call) *slowlog.Log { return &sessionOf(c).server.slowLog }), latency.Command(latencyHost),
	monitorCommand, lolwutCommand, debug.Command(debugHost), acl.Command(aclAdmin),
}

// latencyHost is what LATENCY works with. The counts of this session are flushed before, so that they are in it; those of
// other sessions may lack their last run of equal commands.
func latencyHost(c *command.Call) latency.Host {
	s := sessionOf(c)
	s.flushStats()
	return latency.Host{
		Spikes: &s.server.spikes, Threshold: s.server.tunables.spikeMs.Load(), Commands: table,
		Histogram: func(cmd *command.Command) *latency.Histogram {
			return s.server.counters.Commands[cmd.Index].Latency.Load()
		},
	}
}

// debugHost is what DEBUG works with. Whether it is allowed depends on where the client came from when it connected:
// enable-debug-command local means clients of this machine, and embedded sessions are such.
func debugHost(c *command.Call) debug.Host {
	s := sessionOf(c)
	allowed := s.server.options.DebugRemote || s.server.options.Debug && !s.isRemote
	return debug.Host{Allowed: allowed, Save: s.server.save, Logger: s.server.options.Logger, Client: s.id}
}

var lolwutCommand = &command.Command{
	Name: "lolwut", Arity: -1, Flags: command.ReadOnly | command.Fast, Group: command.GroupServer, Run: onSession(lolwut),
}

const barrel = `   ________
  /\      /\
 |==\====/==|
 |  | || |  |
 |==|=||=|==|
 |  | || |  |
  \_|_||_|_/
`

// lolwut is LOLWUT. Redis draws something else for each VERSION and reads that version's options; here a version is
// checked to be a number, as there, and the picture is always the same.
func lolwut(s *Session, c *command.Call) error {
	if len(c.Args) >= 3 && c.Args.Is(1, "version") {
		if _, ok := number.ParseInt(c.Arg(2)); !ok {
			return command.ErrNotInteger
		}
	}
	c.Out.Verbatim("txt", barrel+"\nStave ver. "+s.server.options.Version+"\n")
	return nil
}

// serverCommands describe the server as a whole.
var serverCommands = []*command.Command{
	configCommand,
	{Name: "info", Arity: -1, Flags: command.Describes | command.AnyState | command.Dangerous, Group: command.GroupServer, Run: onSession(infoCommand)},
}

// infoCommand is INFO. The counts of this session are flushed before, so that they are in it.
// Several sections may be named, in any order; each is shown once.
func infoCommand(s *Session, c *command.Call) error {
	s.flushStats()
	c.Out.Verbatim("txt", s.server.Info(c.Args.Strings(1)...))
	return nil
}

var monitorCommand = &command.Command{
	Name: "monitor", Arity: 1, Flags: command.OfOperator, Group: command.GroupServer, Run: onSession(monitorRun),
}

// monitorRun is MONITOR. From now on the session gets a line for each command of any session. The
// lines arrive like messages, between the replies to what the session itself sends.
func monitorRun(s *Session, c *command.Call) error {
	if c.Queued {
		return command.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
	}
	s.server.hub.Subscribe(&s.subscriber, pubsub.Commands, "")
	return c.OK()
}
