package command

import (
	"context"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/structures"
)

// Call is one execution of one command: what a handler works with.
type Call struct {
	Host    *Host
	Command *Command
	// Args is valid during the call only: the bytes are the parser's.
	Args Args
	// FirstKey is argument 1, if that is the first key and a string of it has been made already, to
	// find its lock. Key returns it, which saves the allocation of another.
	FirstKey string
	// Tx is the transaction over the keys that the command names, or over the whole store if it may
	// read others. It is nil for a command that names none, except within EXEC.
	Tx *db.Tx
	// Out takes the reply. It has a limit: a handler that writes much in a loop ends it when
	// Out.Exceeded says so, and the reply becomes an error.
	Out *resp.Writer
	// Queued is set within EXEC, where no command may wait.
	Queued bool
}

// Host is what a session lends to the commands it executes.
//
// It is a struct and not an interface: handlers need four things of a session, and tests can set
// them.
type Host struct {
	// Store is seen through the namespace that SELECT chose. Only commands that name no keys use
	// it; others would wait for their own locks.
	Store *db.Store
	// Databases is how many namespaces SELECT reaches.
	Databases int
	// Context ends with the server: for commands that take long and can be begun again.
	Context context.Context
	// Interrupted is asked now and then by commands that take long, outside of a transaction, which asks by itself. An
	// error ends the command: nobody waits for it any more. nil: it is not asked.
	Interrupted func() error

	// Wait lets the session wait for what w does, without an end if timeout is 0. reply is called
	// once it has been done. It returns the error with which the handler is to end.
	Wait func(c *Call, w db.Wait, timeout time.Duration, reply func(*Call)) error

	// Encodings are the limits that OBJECT ENCODING obeys.
	Encodings *Encodings
	// MayReadAllKeys reports whether the user may read keys that the call does not name. nil: everything is allowed.
	MayReadAllKeys func(c *Call) bool

	// Session is the session itself, for the commands that its own package adds to the table.
	Session Session
}

// Session is the session that a call is executed for. This package asks it nothing.
type Session interface {
	// ID is the number that CLIENT ID shows.
	ID() int64
}

// askingContext is a context that asks Interrupted too.
type askingContext struct {
	context.Context
	host *Host
}

// Err is the parent's, or that nobody waits for the command.
func (c askingContext) Err() error {
	if err := c.Context.Err(); err != nil || c.host.Interrupted == nil {
		return err
	}
	return c.host.Interrupted()
}

// Asking is Context that also ends when nobody waits for the command any more. That is only said to whoever asks Err,
// which must be the goroutine of the command.
func (h *Host) Asking() context.Context { return askingContext{h.Context, h} }

// Arg returns argument i.
func (c *Call) Arg(i int) []byte { return c.Args[i] }

// Key returns argument i as the name of a key, a field or a member.
func (c *Call) Key(i int) string {
	if i == 1 && c.FirstKey != "" {
		return c.FirstKey
	}
	return string(c.Args[i])
}

// GoesOn is asked by a loop over arguments, or over what many clients have made, in its round i. An error ends the
// command: nobody waits for it any more.
func (c *Call) GoesOn(i int) error {
	if i%askEvery != askEvery-1 || c.Host.Interrupted == nil {
		return nil
	}
	return c.Host.Interrupted()
}

// askEvery is how many rounds of a loop it takes to ask again.
const askEvery = 256

// Matches is structures.Match in a command that has no transaction. It is false when the command is to end.
func (c *Call) Matches(pattern string, name []byte) bool {
	return structures.MatchUntil(pattern, name, func(int) bool { return c.Host.Interrupted != nil && c.Host.Interrupted() != nil })
}

// mayReadAllKeys says whether the call may read keys that it does not name.
func (c *Call) mayReadAllKeys() bool {
	return c.Host.MayReadAllKeys == nil || c.Host.MayReadAllKeys(c)
}

// now is the moment of the command in Unix milliseconds: the transaction's, where there is one.
func (c *Call) now() int64 {
	if c.Tx != nil {
		return c.Tx.Now()
	}
	return time.Now().UnixMilli()
}

// HelpRow is the subcommand HELP of a container.
func HelpRow(container string) *Command {
	return &Command{Name: container + "|help", Arity: 2, Flags: AnyState, Run: Help}
}

// Help lists the subcommands of a container, from the table.
func Help(c *Call) error {
	container := c.Command.Container
	name := strings.ToUpper(container.Name)
	lines := []string{name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	for _, sub := range container.Subcommands {
		usage := strings.ToUpper(sub.Name[len(container.Name)+1:])
		if sub.Syntax != "" {
			usage += " " + sub.Syntax
		}
		lines = append(lines, usage, "    "+sub.Summary)
	}
	c.Out.Array(len(lines))
	for _, line := range lines {
		c.Out.Simple(line)
	}
	return nil
}
