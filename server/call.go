package server

import (
	"context"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
)

// call is one execution of one command: what a handler works with.
type call struct {
	host     *Host
	command  *Command
	args     [][]byte // the name first; valid during the call only
	firstKey string   // argument 1, if it is the first key and a string of it has been made already
	tx       *db.Tx   // set for commands that name keys, and for all commands within EXEC
	out      *resp.Writer
	queued   bool // runs within EXEC: it must not wait
}

// Host is what a session lends to the commands it executes.
type Host struct {
	Store     *db.Store       // seen through the namespace that SELECT chose
	Databases int             // how many namespaces SELECT reaches
	Context   context.Context // ends with the server: for commands that take long

	// Wait lets the session wait for what w does, without an end if timeout is 0. reply is called once it has been done.
	// It returns the error with which the handler is to end.
	Wait func(c *call, w db.Wait, timeout time.Duration, reply func(*call)) error

	Session any // the session itself: for commands that the package of the session adds to the table
}

// arg returns argument i.
func (c *call) arg(i int) []byte { return c.args[i] }

// key returns argument i as the name of a key, a field or a member.
func (c *call) key(i int) string {
	if i == 1 && c.firstKey != "" {
		return c.firstKey
	}
	return string(c.args[i])
}

// ok replies OK.
func (c *call) ok() error {
	c.out.Simple("OK")
	return nil
}

// int replies with an integer, unless err says that there is none.
func (c *call) int(n int, err error) error {
	if err == nil {
		c.out.Int(int64(n))
	}
	return err
}

// int64 is int for the results of arithmetic.
func (c *call) int64(n int64, err error) error {
	if err == nil {
		c.out.Int(n)
	}
	return err
}

// flag replies 1 or 0.
func (c *call) flag(b bool, err error) error {
	if err != nil {
		return err
	}
	if b {
		c.out.Int(1)
	} else {
		c.out.Int(0)
	}
	return nil
}

// now is the moment of the command in Unix milliseconds: the transaction's, where there is one.
func (c *call) now() int64 {
	if c.tx != nil {
		return c.tx.Now()
	}
	return time.Now().UnixMilli()
}

// containerHelp lists the subcommands of a container, from the table.
func containerHelp(c *call) error {
	container := c.command.container
	name := strings.ToUpper(container.Name)
	lines := []string{name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	for _, sub := range container.Subcommands {
		usage := strings.ToUpper(sub.Name[len(container.Name)+1:])
		if sub.Syntax != "" {
			usage += " " + sub.Syntax
		}
		lines = append(lines, usage, "    "+sub.Summary)
	}
	c.out.Array(len(lines))
	for _, line := range lines {
		c.out.Simple(line)
	}
	return nil
}
