package admin

import (
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/shared"
)

// replicaofCommands make the server a replica, or a master, and say which it is.
func replicaofCommands(of source) []*command.Command {
	const flags = command.Admin | command.NoScript | command.Stale | command.NoAsyncLoading
	return []*command.Command{
		{Name: "replicaof", Arity: 3, Flags: flags, Work: command.Unbounded, Group: command.GroupServer, Run: of.on(replicaofCommand)},
		{Name: "slaveof", Arity: 3, Flags: flags, Work: command.Unbounded, Group: command.GroupServer, Run: of.on(replicaofCommand)},
		{Name: "failover", Arity: -1, Flags: command.Admin | command.NoScript | command.Stale, Work: command.Unbounded, Group: command.GroupServer, Run: of.on(failoverCommand)},
		{Name: "role", Arity: 1, Flags: command.Describes | command.OfSession | command.Fast | command.Dangerous | command.AdminCategory, Group: command.GroupServer,
			Run: of.on(roleCommand)},
	}
}

// replicaofCommand is REPLICAOF and SLAVEOF. What it says survives a restart. Within an EXEC that has locked keys it takes
// effect after the commit.
func replicaofCommand(a *Caller, c *command.Call) error {
	if a.State.Member != nil {
		return shared.ErrOfGroup
	}
	if a.State.Options.Cluster {
		return command.Error("ERR REPLICAOF not allowed in cluster mode.")
	}
	if a.State.Failover.Phase() != shared.NoFailover {
		return shared.ErrFailingOver
	}
	var to shared.Master
	if !c.Args.Is(1, "no") || !c.Args.Is(2, "one") {
		port, ok := number.ParseInt(c.Arg(2))
		if !ok || port < 1 || port > 65535 {
			return command.Error("ERR Invalid master port")
		}
		to = shared.Master{Host: string(c.Arg(1)), Port: int(port)}
		if !to.IsValid() {
			return command.Error("ERR Invalid master host")
		}
		if now, _ := a.State.Following.Master(); now == to && !a.State.Following.Status().Stopped {
			c.Out.Simple("OK Already connected to specified master")
			return nil
		}
	}
	return a.unlocked(c, func() error { return a.State.Failover.ReplicaOf(to) })
}

// roleCommand is ROLE.
func roleCommand(a *Caller, c *command.Call) error {
	if role := a.State.Following.Role(); role != nil {
		return c.Reply(role)
	}
	return c.Reply(roleOfMaster(a))
}
