package server

import (
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

var slowlogCommand = &command.Command{
	Name: "slowlog", Arity: -2, Group: command.GroupServer, Since: "2.2.12", Complexity: "Depends on the subcommand",
	Summary: "A container for commands about what took long.",
	Subcommands: []*command.Command{
		{Name: "slowlog|get", Arity: -2, Flags: command.Admin | anyStateFlags, Since: "2.2.12",
			Complexity: "O(n), n being the number of entries returned",
			Summary:    "Returns the last commands that took long, the newest first.", Syntax: "[count]", Run: onSession(slowlogGet)},
		{Name: "slowlog|len", Arity: 2, Flags: command.Admin | anyStateFlags, Since: "2.2.12", Complexity: "O(1)",
			Summary: "Returns how many such commands are kept.",
			Run: onSession(func(s *Session, c *command.Call) error {
				l := &s.server.slowLog
				l.mu.Lock()
				defer l.mu.Unlock()
				return c.Int(len(l.entries), nil)
			})},
		{Name: "slowlog|reset", Arity: 2, Flags: command.Admin | anyStateFlags, Since: "2.2.12", Complexity: "O(1)",
			Summary: "Forgets them.",
			Run: onSession(func(s *Session, c *command.Call) error {
				l := &s.server.slowLog
				l.mu.Lock()
				defer l.mu.Unlock()
				l.entries = nil
				return c.OK()
			})},
		{Name: "slowlog|help", Arity: 2, Flags: anyStateFlags, Since: "6.2.0", Complexity: "O(1)",
			Summary: "Lists the subcommands.", Run: command.Help},
	},
}

// slowlogGet is SLOWLOG GET: the newest ten, or as many as the count says, -1 being all. The count
// may exceed the log. The mutex is held while the reply is written into memory, not while it is
// sent.
func slowlogGet(s *Session, c *command.Call) error {
	count := int64(10)
	if len(c.Args) > 3 {
		return errUnknownOrArity(c)
	}
	if len(c.Args) == 3 {
		var ok bool
		if count, ok = number.ParseInt(c.Arg(2)); !ok || count < -1 {
			return command.Error("ERR count should be greater than or equal to -1")
		}
	}
	l := &s.server.slowLog
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.entries)
	if count >= 0 {
		n = int(min(int64(n), count))
	}
	c.Out.Array(n)
	for i := range n {
		e := &l.entries[len(l.entries)-1-i]
		c.Out.Array(6)
		c.Out.Int(e.id)
		c.Out.Int(e.at.Unix())
		c.Out.Int(e.took.Microseconds())
		c.Out.Array(len(e.args))
		for _, arg := range e.args {
			c.Out.BulkString(arg)
		}
		c.Out.BulkString(e.from)
		c.Out.BulkString(e.fromName)
	}
	return nil
}
