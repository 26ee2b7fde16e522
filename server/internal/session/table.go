package session

import (
	"slices"

	"github.com/stavedb/stave/server/command"
)

// Commands are the commands that change the session itself, or run within it.
func Commands() []*command.Command {
	return slices.Concat(connectionCommands, authCommands, transactionCommands, watchCommands, pubSubCommands)
}

// Of is the session that a command is executed for. The assertion cannot fail: the host of every call is made by
// NewSession.
func Of(c *command.Call) *Session { return c.Host.Session.(*Session) }

// onSession makes a handler of a function that works on the session itself. Handlers of package
// command know no session, so that they cannot come to depend on one.
func onSession(run func(*Session, *command.Call) error) func(*command.Call) error {
	return func(c *command.Call) error { return run(Of(c), c) }
}
