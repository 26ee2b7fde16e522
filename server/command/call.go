package command

import (
	"context"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
)

// Call is one execution of one command: what a handler works with.
type Call struct {
	Host     *Host
	Command  *Command
	Args     [][]byte // the name first; valid during the call only
	FirstKey string   // argument 1, if it is the first key and a string of it has been made already
	Tx       *db.Tx   // set for commands that name keys, and for all commands within EXEC
	Out      *resp.Writer
	Queued   bool // runs within EXEC: it must not wait
}

// Host is what a session lends to the commands it executes.
type Host struct {
	Store     *db.Store       // seen through the namespace that SELECT chose
	Databases int             // how many namespaces SELECT reaches
	Context   context.Context // ends with the server: for commands that take long

	// Wait lets the session wait for what w does, without an end if timeout is 0. reply is called
	// once it has been done. It returns the error with which the handler is to end.
	Wait func(c *Call, w db.Wait, timeout time.Duration, reply func(*Call)) error

	Session any // the session itself: for commands that the package of the session adds to the table
}

// Arg returns argument i.
func (c *Call) Arg(i int) []byte { return c.Args[i] }

// Key returns argument i as the name of a key, a field or a member.
func (c *Call) Key(i int) string {
	if i == 1 && c.FirstKey != "" {
		return c.FirstKey
	}
	return string(c.Args[i])
}

// now is the moment of the command in Unix milliseconds: the transaction's, where there is one.
func (c *Call) now() int64 {
	if c.Tx != nil {
		return c.Tx.Now()
	}
	return time.Now().UnixMilli()
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
