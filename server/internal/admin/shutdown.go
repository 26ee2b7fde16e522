package admin

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/shared"
)

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
