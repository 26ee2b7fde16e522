package admin

import (
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

// serverCommands describe the server as a whole, or end it.
func serverCommands(of source) []*command.Command {
	return command.InGroup(command.GroupServer, []*command.Command{
		{Name: "info", Arity: -1, Flags: command.Describes | command.AnyState | command.Dangerous, Run: of.on(infoCommand)},
		{Name: "lolwut", Arity: -1, Flags: command.ReadOnly | command.Fast, Run: of.on(lolwut)},
		{Name: "shutdown", Arity: -1, Flags: command.OfOperator | command.NoMulti | command.AllowBusy, Run: of.on(shutdownCommand)},
	})
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
func lolwut(a *Caller, c *command.Call) error {
	if len(c.Args) >= 3 && c.Args.Is(1, "version") {
		if _, ok := number.ParseInt(c.Arg(2)); !ok {
			return command.ErrNotInteger
		}
	}
	c.Out.Verbatim("txt", barrel+"\nStave ver. "+a.State.Options.Version+"\n")
	return nil
}

// infoCommand is INFO. The counts of this session are flushed before, so that they are in it.
// Several sections may be named, in any order; each is shown once.
func infoCommand(a *Caller, c *command.Call) error {
	a.Flush()
	c.Out.Verbatim("txt", a.State.Server.Info(c.Args.Strings(1)...))
	return nil
}
