package server

import (
	"time"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
)

// Commands that tools ask any Redis for.

var operatorCommands = []*command.Command{slowlogCommand, monitorCommand, lolwutCommand, latencyCommand, debugCommand, moduleCommand, acl.Command(aclAdmin)}

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

const errNoModules command.Error = "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it from a " +
	"local connection, otherwise you need to set this option in the configuration file, and then restart the server."

func refuseModules(*command.Call) error { return errNoModules }

var moduleCommand = &command.Command{
	Name: "module", Arity: -2, Group: command.GroupServer, Since: "4.0.0", Complexity: "Depends on the subcommand",
	Summary: "A container for commands about modules, of which there are none.",
	Subcommands: []*command.Command{
		{Name: "module|list", Arity: 2, Flags: command.Admin | command.NoScript, Since: "4.0.0", Complexity: "O(1)",
			Summary: "Returns nothing: there are no modules.", Run: func(c *command.Call) error { c.Out.Array(0); return nil }},
		{Name: "module|load", Arity: -3, Flags: command.Admin | command.NoScript | command.NoAsyncLoading, Since: "4.0.0", Complexity: "O(1)",
			Summary: "Is refused: modules are not supported.", Syntax: "path [arg [arg ...]]", Run: refuseModules},
		{Name: "module|loadex", Arity: -3, Flags: command.Admin | command.NoScript | command.NoAsyncLoading, Since: "7.0.0", Complexity: "O(1)",
			Summary: "Is refused: modules are not supported.", Syntax: "path [arg [arg ...]]", Run: refuseModules},
		{Name: "module|unload", Arity: 3, Flags: command.Admin | command.NoScript | command.NoAsyncLoading, Since: "4.0.0", Complexity: "O(1)",
			Summary: "Is refused: modules are not supported.", Syntax: "name", Run: refuseModules},
		command.HelpRow("module", "5.0.0"),
	},
}

// serverCommands describe the server as a whole.
var serverCommands = []*command.Command{
	configCommand,
	{Name: "info", Arity: -1, Flags: command.AnyState | command.Dangerous, Group: command.GroupServer, Since: "1.0.0",
		Complexity: "O(1)", Summary: "Describes the server and counts what it did.", Syntax: "[section [section ...]]",
		Run: onSession(infoCommand)},
	{Name: "time", Arity: 1, Flags: command.AnyState | command.Fast, Group: command.GroupServer, Since: "2.6.0", Complexity: "O(1)",
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
	Name: "monitor", Arity: 1, Flags: command.OfOperator, Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Shows each command that the server executes, until the connection ends or is reset.", Run: onSession(monitorRun),
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
