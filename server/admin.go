package server

import (
	"slices"
	"time"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
	"github.com/stavedb/stave/server/internal/debug"
	"github.com/stavedb/stave/server/internal/introspect"
	"github.com/stavedb/stave/server/internal/latency"
	"github.com/stavedb/stave/server/internal/slowlog"
)

// Admin is what a command about the server works with: what the sessions share, and of the session that it is executed
// for what it lends.
type Admin struct {
	state           *State
	client          *client
	user            *acl.User // whose the session is
	isTLS, isRemote bool

	flush     func()                                                                       // adds what the session has counted to the figures of all
	end       func()                                                                       // ends the session once the reply is sent
	drop      func()                                                                       // makes it a session of nobody, and ends it
	saveLater func()                                                                       // makes the EXEC that runs save at its end
	wait      func(c *command.Call, timeout time.Duration, late func(*command.Call)) error // for what never happens here
}

// adminSource gives the Admin of a call.
type adminSource func(*command.Call) *Admin

// on makes a handler of a function that works with an Admin.
func (of adminSource) on(run func(*Admin, *command.Call) error) func(*command.Call) error {
	return func(c *command.Call) error { return run(of(c), c) }
}

// AdminCommands are the commands about the server. CLIENT has subcommands besides these, which change the session:
// ofSession. COMMAND describes the table.
func AdminCommands(of func(*command.Call) *Admin, ofSession []*command.Command, table func() *command.Table) []*command.Command {
	source := adminSource(of)
	client := &command.Command{Name: "client", Arity: -2, Group: command.GroupConnection,
		Subcommands: slices.Concat(clientCommands(source), clientControlCommands(source), clientModeCommands(source), ofSession)}
	return slices.Concat(
		[]*command.Command{client, pubSubCommand(source), configCommand(source), monitorCommand(source), introspect.Command(table), acl.Command(source.acl),
			debug.Command(source.debug), latency.Command(source.latency), slowlog.Command(source.slowLog)},
		serverCommands(source), persistenceCommands(source), replicationCommands(source), cluster.Commands(source.clusterNode),
	)
}

// acl is what ACL works with.
func (of adminSource) acl(c *command.Call) acl.Admin {
	a := of(c)
	v := a.state
	return acl.Admin{Users: v.users, Log: &v.aclLog, File: v.options.ACLFile, Logger: v.options.Logger, User: a.user, Apply: a.applyChange}
}

// applyChange ends what a change of rules does not allow any more.
func (a *Admin) applyChange(change acl.Change) {
	switch {
	case !a.state.endLost(change, a.client):
	case change.After == nil:
		a.drop()
	default:
		a.end()
	}
}

// slowLog is what SLOWLOG works with.
func (of adminSource) slowLog(c *command.Call) *slowlog.Log { return &of(c).state.slowLog }

// latency is what LATENCY works with. The counts of this session are flushed before, so that they are in it; those of
// other sessions may lack their last run of equal commands.
func (of adminSource) latency(c *command.Call) latency.Host {
	a := of(c)
	a.flush()
	return latency.Host{
		Spikes: &a.state.spikes, Threshold: a.state.tunables.spikeMs.Load(), Commands: a.state.table,
		Histogram: func(cmd *command.Command) *latency.Histogram {
			return a.state.counters.Commands[cmd.Index].Latency.Load()
		},
	}
}

// debug is what DEBUG works with. Whether it is allowed depends on where the client came from when it connected:
// enable-debug-command local means clients of this machine, and embedded sessions are such.
func (of adminSource) debug(c *command.Call) debug.Host {
	a := of(c)
	allowed := a.state.options.DebugRemote || a.state.options.Debug && !a.isRemote
	return debug.Host{Allowed: allowed, Save: a.state.save, Logger: a.state.options.Logger, Client: a.client.id()}
}
