package slowlog

import "github.com/stavedb/stave/server/command"

// Command is SLOWLOG. log is asked at each call.
func Command(log func(*command.Call) *Log) *command.Command {
	return &command.Command{
		Name: "slowlog", Arity: -2, Group: command.GroupServer,
		Subcommands: []*command.Command{
			{Name: "slowlog|get", Arity: -2, Flags: command.Describes | command.Admin | command.AnyState,
				Run: func(c *command.Call) error { return log(c).Get(c) }},
			{Name: "slowlog|len", Arity: 2, Flags: command.Describes | command.Admin | command.AnyState,
				Run: func(c *command.Call) error {
					n, _, _ := log(c).Usage()
					return c.Int(n, nil)
				}},
			{Name: "slowlog|reset", Arity: 2, Flags: command.Admin | command.AnyState,
				Run: func(c *command.Call) error {
					log(c).Reset()
					return c.OK()
				}},
			command.HelpRow("slowlog"),
		},
	}
}
