package admin

import (
	"github.com/stavedb/stave/server/command"
)

// This server is always a master without replicas. Tools that ask get Redis's answers for that, and what
// would make it a replica is refused.

func replicationCommands(of source) []*command.Command {
	return []*command.Command{
		{Name: "wait", Arity: 3, Flags: command.NoScript | command.ConnectionCategory, Group: command.GroupGeneric, Run: of.on(waitCommand)},
		{Name: "waitaof", Arity: 4, Flags: command.NoScript | command.ConnectionCategory | command.Blocking, Work: command.Unbounded, Group: command.GroupGeneric,
			Run: of.on(waitaofCommand)},
	}
}
