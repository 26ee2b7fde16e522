package server

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
	"github.com/stavedb/stave/server/internal/introspect"
	"github.com/stavedb/stave/server/internal/scripts"
)

// Commands is the command table, sorted by name: what package command has, and what works on the
// session. It must not be changed.
var Commands []*command.Command

var table *command.Table

// The table is put together at run time, because COMMAND is in it and reads it.
func init() {
	introspection := []*command.Command{introspect.Command(func() *command.Table { return table })}
	table = command.NewTable(command.Data(),
		connectionCommands, authCommands, transactionCommands, watchCommands, serverCommands, introspection, pubSubCommands, operatorCommands,
		replicationCommands, scriptCommands, scripts.Commands(scriptSession), persistenceCommands, cluster.Commands(clusterNode),
	)
	Commands = table.Commands
}

// Lookup returns the command of that name in any case, or nil. A subcommand is called
// "client|setname". The table does not change after the package's start, so any goroutine may ask.
func Lookup(name string) *command.Command { return table.Lookup(name) }

// Resolve returns the command of a request, or the error that is the reply to an unknown one and to a wrong number of
// arguments.
func Resolve(args [][]byte) (*command.Command, error) { return table.Resolve(args) }

// sessionOf is the session that a command is executed for. The assertion cannot fail: the host of every call is made by
// NewSession.
func sessionOf(c *command.Call) *Session { return c.Host.Session.(*Session) }

// onSession makes a handler of a function that works on the session itself. Handlers of package
// command know no session, so that they cannot come to depend on one.
func onSession(run func(*Session, *command.Call) error) func(*command.Call) error {
	return func(c *command.Call) error { return run(sessionOf(c), c) }
}
