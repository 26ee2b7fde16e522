package slowlog

import (
	"strings"

	"github.com/stavedb/stave/server/command"
)

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

// Logs are those that COMMANDLOG knows.
type Logs struct {
	Slow, LargeRequest, LargeReply *Log
}

// of is the log that argument i names.
func (l Logs) of(c *command.Call, i int) (*Log, error) {
	switch strings.ToLower(string(c.Arg(i))) {
	case "slow":
		return l.Slow, nil
	case "large-request":
		return l.LargeRequest, nil
	case "large-reply":
		return l.LargeReply, nil
	}
	return nil, command.Error("ERR type should be one of the following: slow, large-request, large-reply")
}

// LogCommand is COMMANDLOG. logs is asked at each call.
func LogCommand(logs func(*command.Call) Logs) *command.Command {
	return &command.Command{
		Name: "commandlog", Arity: -2, Group: command.GroupServer,
		Subcommands: []*command.Command{
			{Name: "commandlog|get", Arity: 4, Flags: command.Describes | command.Admin | command.AnyState,
				Run: func(c *command.Call) error {
					count, err := parseCount(c)
					if err != nil {
						return err
					}
					l, err := logs(c).of(c, 3)
					if err != nil {
						return err
					}
					return l.reply(c, count)
				}},
			{Name: "commandlog|len", Arity: 3, Flags: command.Describes | command.Admin | command.AnyState,
				Run: func(c *command.Call) error {
					l, err := logs(c).of(c, 2)
					if err != nil {
						return err
					}
					n, _, _ := l.Usage()
					return c.Int(n, nil)
				}},
			{Name: "commandlog|reset", Arity: 3, Flags: command.Admin | command.AnyState,
				Run: func(c *command.Call) error {
					l, err := logs(c).of(c, 2)
					if err != nil {
						return err
					}
					l.Reset()
					return c.OK()
				}},
			command.HelpRow("commandlog"),
		},
	}
}
