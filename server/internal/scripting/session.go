package scripting

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/stats"
)

// Session is what scripts need of the session that they run for. A session has one from its first script on.
type Session struct {
	*Shared
	Client   *clients.Client
	Host     *command.Host // for the commands that scripts call
	Out      *resp.Writer
	Unsynced *shared.Unsynced
	Unsent   *pubsub.Unsent
	Attempt  *stats.Attempt // what scripts that may have to be executed again have called
	Lent     Lent

	last    *execution // see newRun
	pending *Set       // what the EXEC that runs has made of the libraries; nil if nothing
}

// Lent is what the session does for its scripts.
type Lent struct {
	// Where says where the request is executed that runs the script.
	Where func() Where
	// Begin begins a transaction, which asks interrupt whether to go on, if it is in an event loop.
	Begin func(write bool, keys []string, interrupt func() error) (*db.Tx, error)
	// Transact runs fn in a transaction over keys, or the whole store.
	Transact func(write bool, keys []string, fn func(*db.Tx) error) error
	// Execute runs one of several commands of a transaction: a refusal has been replied and rolled back.
	Execute func(c *command.Call, limit int) (refusal string, err error)
	// MaxReply is how long the reply to a command may be.
	MaxReply func(*command.Command) int
	// MayRunHere reports whether a command is short enough for an event loop or a batch.
	MayRunHere func(cmd *command.Command, args [][]byte) bool
	// NoRoom is the error of a script for whose reply there is no memory.
	NoRoom func() error
	// Long is called once a script lasts.
	Long func()
}

// Where is where a request is executed.
type Where struct {
	InLoop    bool // in an event loop, whose other clients wait
	InBatch   bool // in one transaction with others, which wait for its end
	AllLocked bool // that transaction has locked all keys
}

// isShort reports whether a script may take little time only: others wait for the event loop, or for the locks of a
// batch.
func (w Where) isShort() bool { return w.InLoop || w.InBatch }

// EndExec forgets what an EXEC has made of the libraries.
func (s *Session) EndExec() { s.pending = nil }

// source gives the Session of a call.
type source func(*command.Call) *Session

// on makes a handler of a function that works with a Session.
func (of source) on(run func(*Session, *command.Call) error) func(*command.Call) error {
	return func(c *command.Call) error { return run(of(c), c) }
}

// monitored is on for a command that runs a script: it is shown before what the script calls.
func (of source) monitored(run func(*Session, *command.Call) error) func(*command.Call) error {
	return of.on(func(s *Session, c *command.Call) error {
		s.State.FeedMonitors(s.Host.Store.Namespace(), s.Client.Remote, c.Command, c.Args)
		return run(s, c)
	})
}

// Commands are EVAL, FCALL and their like, SCRIPT and FUNCTION. of is asked at each call.
func Commands(of func(*command.Call) *Session) []*command.Command {
	return command.InGroup(command.GroupScripting, append(evalCommands(of), functionCommand(of), scriptCommand(of)))
}
