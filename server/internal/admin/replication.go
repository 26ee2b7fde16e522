package admin

import (
	"github.com/stavedb/stave/server/command"
)

// This server has no replicas. Tools that ask get Redis's answers for that. What makes it a replica itself is in
// replicaof.go.

func replicationCommands(of source) []*command.Command {
	return []*command.Command{
		{Name: "wait", Arity: 3, Flags: command.NoScript | command.ConnectionCategory, Group: command.GroupGeneric, Run: of.on(waitCommand)},
		{Name: "waitaof", Arity: 4, Flags: command.NoScript | command.ConnectionCategory | command.Blocking, Work: command.Unbounded, Group: command.GroupGeneric,
			Run: of.on(waitaofCommand)},
	}
}
