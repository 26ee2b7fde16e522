package slowlog

import "github.com/stavedb/stave/server/command"

// Command is SLOWLOG. log is asked at each call.
func Command(log func(*command.Call) *Log) *command.Command {
	return &command.Command{
		Name: "slowlog", Arity: -2, Group: command.GroupServer, Since: "2.2.12", Complexity: "Depends on the subcommand",
		Summary: "A container for commands about what took long.",
		Subcommands: []*command.Command{
			{Name: "slowlog|get", Arity: -2, Flags: command.Admin | command.AnyState, Since: "2.2.12",
				Complexity: "O(n), n being the number of entries returned",
				Summary:    "Returns the last commands that took long, the newest first.", Syntax: "[count]", Run: func(c *command.Call) error { return log(c).Get(c) }},
			{Name: "slowlog|len", Arity: 2, Flags: command.Admin | command.AnyState, Since: "2.2.12", Complexity: "O(1)",
				Summary: "Returns how many such commands are kept.",
				Run: func(c *command.Call) error {
					n, _, _ := log(c).Usage()
					return c.Int(n, nil)
				}},
			{Name: "slowlog|reset", Arity: 2, Flags: command.Admin | command.AnyState, Since: "2.2.12", Complexity: "O(1)",
				Summary: "Forgets them.",
				Run: func(c *command.Call) error {
					log(c).Reset()
					return c.OK()
				}},
			command.HelpRow("slowlog", "6.2.0"),
		},
	}
}
