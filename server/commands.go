package server

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/admin"
	"github.com/stavedb/stave/server/internal/scripting"
	"github.com/stavedb/stave/server/internal/session"
	"github.com/stavedb/stave/server/internal/tracking"
)

// Commands is the command table, sorted by name: what package command has, and what works on the
// session. It must not be changed.
var Commands []*command.Command

var table *command.Table

// The table is put together at run time, because COMMAND is in it and reads it.
func init() {
	table = command.NewTable(command.Data(), session.Commands(), scripting.Commands(scriptsOf), admin.Commands(adminOf, session.ClientCommands, tracking.Commands(trackingSession), func() *command.Table { return table }))
	Commands = table.Commands
}

// adminOf is what a command about the server works with.
func adminOf(c *command.Call) *admin.Caller {
	l := session.Of(c).Lend()
	return &admin.Caller{
		State: l.State, Client: l.Client, User: l.User, IsTLS: l.IsTLS, IsRemote: l.IsRemote,
		Flush: l.Flush, NoteBuffers: l.NoteBuffers, End: l.End, Drop: l.Drop, SaveLater: l.SaveLater, AfterExec: l.AfterExec, Wait: l.Wait, Follow: l.Follow,
	}
}

// scriptsOf is what EVAL, SCRIPT, FUNCTION and their like work with.
func scriptsOf(c *command.Call) *scripting.Session { return session.Of(c).LendToScripts() }

// trackingSession is what CLIENT TRACKING and its like work with.
func trackingSession(c *command.Call) tracking.Session {
	l := session.Of(c).Lend()
	return tracking.Session{Reads: l.Tracked, IsConnected: func(id int64) bool { return l.State.Clients.Get(id) != nil }}
}

// Lookup returns the command of that name in any case, or nil. A subcommand is called
// "client|setname". The table does not change after the package's start, so any goroutine may ask.
func Lookup(name string) *command.Command { return table.Lookup(name) }

// Resolve returns the command of a request, or the error that is the reply to an unknown one and to a wrong number of
// arguments.
func Resolve(args [][]byte) (*command.Command, error) { return table.Resolve(args) }
