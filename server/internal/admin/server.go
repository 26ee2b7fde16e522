package admin

import (
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/shared"
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

// shutdownCommand is SHUTDOWN. There is no reply: the connection ends, as all others do. The log is complete
// without a save, so NOSAVE loses nothing. As in Redis a save that fails keeps the server running, unless FORCE
// says otherwise. NOW has no effect, for there are no replicas to wait for, and ABORT never finds a shutdown:
// once it has begun no command is executed any more.
func shutdownCommand(a *Caller, c *command.Call) error {
	var save, noSave, now, force, abort bool
	for i := 1; i < len(c.Args); i++ {
		switch {
		case c.Args.Is(i, "nosave"):
			noSave = true
		case c.Args.Is(i, "save"):
			save = true
		case c.Args.Is(i, "now"):
			now = true
		case c.Args.Is(i, "force"):
			force = true
		case c.Args.Is(i, "abort"):
			abort = true
		default:
			return command.ErrSyntax
		}
	}
	switch {
	case abort && (save || noSave || now || force), save && noSave:
		return command.ErrSyntax
	case abort:
		return command.Error("ERR No shutdown in progress.")
	}
	if !noSave {
		if err := a.State.Save(); err != nil && !force {
			return command.Error("ERR Errors trying to SHUTDOWN. Check logs.")
		}
	}
	if !a.State.Server.ShutDown() {
		return command.Error("ERR There is no server to shut down: this is an embedded session.")
	}
	a.State.Options.Logger.Info("SHUTDOWN: ending", "client", a.Client.ID(), "address", a.Client.Remote)
	a.End()
	return shared.ErrNoReply
}
