package server

import (
	"time"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

// Commands that tools ask any Redis for.

var operatorCommands = []*command.Command{slowlogCommand, monitorCommand, roleCommand, lolwutCommand, latencyCommand, debugCommand}

var roleCommand = &command.Command{
	Name: "role", Arity: 1, Flags: sessionFlags | command.Fast | command.Dangerous | command.AdminCategory, Group: command.GroupServer, Since: "2.8.12", Complexity: "O(1)",
	Summary: "Returns what the server is in a replication: a master without replicas.",
	Run:     func(c *command.Call) error { return c.Reply([]any{"master", 0, []any{}}) },
}

var lolwutCommand = &command.Command{
	Name: "lolwut", Arity: -1, Flags: command.ReadOnly | command.Fast, Group: command.GroupServer, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Draws a barrel, and says which version this is.", Syntax: "[VERSION version]", Run: onSession(lolwut),
}

const barrel = `   ________
  /\      /\
 |==\====/==|
 |  | || |  |
 |==|=||=|==|
 |  | || |  |
  \_|_||_|_/
`

// lolwut is LOLWUT.
func lolwut(s *Session, c *command.Call) error {
	if len(c.Args) >= 3 && c.Is(1, "version") {
		if _, ok := number.ParseInt(c.Arg(2)); !ok {
			return command.ErrNotInteger
		}
	}
	c.Out.Verbatim("txt", barrel+"\nStave ver. "+s.server.options.Version+"\n")
	return nil
}

// latencyNone is what there is to say about spikes of latency: nothing samples them.
const latencyNone = "Spikes of latency are not sampled here. SLOWLOG shows commands that took long, INFO commandstats how long each takes."

var latencyCommand = &command.Command{
	Name: "latency", Arity: -2, Group: command.GroupServer, Since: "2.8.13", Complexity: "Depends on the subcommand",
	Summary: "A container for commands about spikes of latency.",
	Subcommands: []*command.Command{
		{Name: "latency|latest", Arity: 2, Flags: operatorFlags, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Returns nothing: spikes of latency are not sampled.",
			Run:     func(c *command.Call) error { c.Out.Array(0); return nil }},
		{Name: "latency|history", Arity: 3, Flags: operatorFlags, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Returns nothing: spikes of latency are not sampled.", Syntax: "event",
			Run: func(c *command.Call) error { c.Out.Array(0); return nil }},
		{Name: "latency|reset", Arity: -2, Flags: operatorFlags, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Returns 0: there is nothing to forget.", Syntax: "[event [event ...]]",
			Run: func(c *command.Call) error { return c.Int(0, nil) }},
		{Name: "latency|graph", Arity: 3, Flags: operatorFlags, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Is refused: there are no samples.", Syntax: "event",
			Run: func(c *command.Call) error {
				return command.Errorf("ERR No samples available for event '%s'", command.Quoted(c.Arg(2)))
			}},
		{Name: "latency|doctor", Arity: 2, Flags: operatorFlags, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Says where to look instead.",
			Run:     func(c *command.Call) error { c.Out.Verbatim("txt", latencyNone+"\n"); return nil }},
		{Name: "latency|help", Arity: 2, Flags: anyStateFlags, Since: "2.8.13", Complexity: "O(1)",
			Summary: "Lists the subcommands.", Run: command.Help},
	},
}

// serverCommands describe the server as a whole.
var serverCommands = []*command.Command{
	configCommand,
	{Name: "info", Arity: -1, Flags: anyStateFlags | command.Dangerous, Group: command.GroupServer, Since: "1.0.0",
		Complexity: "O(1)", Summary: "Describes the server and counts what it did.", Syntax: "[section [section ...]]",
		Run: onSession(infoCommand)},
	{Name: "time", Arity: 1, Flags: anyStateFlags | command.Fast, Group: command.GroupServer, Since: "2.6.0", Complexity: "O(1)",
		Summary: "Returns the server's clock: Unix seconds, and microseconds.", Run: timeCommand},
}

// timeCommand is TIME.
func timeCommand(c *command.Call) error {
	now := time.Now()
	c.Out.Array(2)
	c.Out.BulkInt(now.Unix())
	c.Out.BulkInt(int64(now.Nanosecond() / 1000))
	return nil
}

// infoCommand is INFO. The counts of this session are flushed before, so that they are in it.
// Several sections may be named, in any order; each is shown once.
func infoCommand(s *Session, c *command.Call) error {
	s.flushStats()
	c.Out.Verbatim("txt", s.server.Info(c.Strings(1)...))
	return nil
}

var monitorCommand = &command.Command{
	Name: "monitor", Arity: 1, Flags: operatorFlags, Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Shows each command that the server executes, until the connection ends or is reset.", Run: onSession(monitorRun),
}

// monitorRun is MONITOR. From now on the session gets a line for each command of any session. The
// lines arrive like messages, between the replies to what the session itself sends.
func monitorRun(s *Session, c *command.Call) error {
	if c.Queued {
		return command.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
	}
	s.server.hub.subscribe(s, toCommands, "")
	return c.OK()
}
