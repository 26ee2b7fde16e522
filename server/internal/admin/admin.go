package admin

import (
	"slices"
	"time"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/cluster"
	"github.com/stavedb/stave/server/internal/debug"
	"github.com/stavedb/stave/server/internal/introspect"
	"github.com/stavedb/stave/server/internal/latency"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/slowlog"
)

// Caller is what a command about the server works with: what the sessions share, and of the session that it is executed
// for what it lends.
type Caller struct {
	State           *shared.State
	Client          *clients.Client
	User            *acl.User // whose the session is
	IsTLS, IsRemote bool

	Flush       func()                 // adds what the session has counted to the figures of all
	NoteBuffers func()                 // notes its buffers, which others see when a command has ended
	End         func()                 // ends the session once the reply is sent
	Drop        func()                 // makes it a session of nobody, and ends it
	SaveLater   func()                 // makes the EXEC that runs save at its end
	Follow      func(*replication.Ask) // makes the connection a replica's, when the replies have left; nil without one
	// AfterExec lets fn run at the end of the EXEC that runs, when nothing is locked.
	AfterExec func(fn func())
	// Wait lets the session wait for what does not happen on this server; late replies when the time is over.
	Wait func(c *command.Call, timeout time.Duration, late func(*command.Call)) error
}

// unlocked does what may not be done while keys are locked: at once, or at the end of an EXEC that has locked some. By then that
// has replied OK, and an error is logged.
func (a *Caller) unlocked(c *command.Call, do func() error) error {
	if c.Tx == nil {
		return c.Done(do())
	}
	a.AfterExec(func() {
		if err := do(); err != nil {
			a.State.Options.Logger.Error("a command of an EXEC failed after its commit", "command", c.Command.Name, "error", err)
		}
	})
	return c.OK()
}

// source gives the Caller of a call.
type source func(*command.Call) *Caller

// on makes a handler of a function that works with a Caller.
func (of source) on(run func(*Caller, *command.Call) error) func(*command.Call) error {
	return func(c *command.Call) error { return run(of(c), c) }
}

// Commands are the commands about the server. CLIENT has subcommands besides these that change the session: reply and
// tracking, in the order in which CLIENT HELP lists them. COMMAND describes the table.
func Commands(of func(*command.Call) *Caller, reply, tracking []*command.Command, table func() *command.Table) []*command.Command {
	source := source(of)
	client := &command.Command{Name: "client", Arity: -2, Group: command.GroupConnection,
		Subcommands: slices.Concat(clientCommands(source), clientControlCommands(source), reply, clientModeCommands(source), tracking)}
	return slices.Concat(
		[]*command.Command{client, pubSubCommand(source), configCommand(source), monitorCommand(source), introspect.Command(table), acl.Command(source.acl),
			debug.Command(source.debug), latency.Command(source.latency), slowlog.Command(source.slowLog), slowlog.LogCommand(source.logs)},
		serverCommands(source), persistenceCommands(source), replicationCommands(source), replicaofCommands(source), cluster.Commands(source.clusterView),
	)
}

// acl is what ACL works with.
func (of source) acl(c *command.Call) acl.Admin {
	a := of(c)
	v := a.State
	return acl.Admin{Users: v.Users, Log: &v.ACLLog, File: v.Options.ACLFile, Logger: v.Options.Logger, User: a.User, Apply: a.applyChanges}
}

// applyChanges ends what changes of rules do not allow any more.
func (a *Caller) applyChanges(changes []acl.Change) {
	switch own := a.State.EndLost(changes, a.Client); {
	case own == nil:
	case own.After == nil:
		a.Drop()
	default:
		a.End()
	}
}

// slowLog is what SLOWLOG works with.
func (of source) slowLog(c *command.Call) *slowlog.Log { return &of(c).State.SlowLog }

// logs is what COMMANDLOG works with.
func (of source) logs(c *command.Call) slowlog.Logs {
	v := of(c).State
	return slowlog.Logs{Slow: &v.SlowLog, LargeRequest: &v.LargeRequests, LargeReply: &v.LargeReplies}
}

// latency is what LATENCY works with. The counts of this session are flushed before, so that they are in it; those of
// other sessions may lack their last run of equal commands.
func (of source) latency(c *command.Call) latency.Host {
	a := of(c)
	a.Flush()
	return latency.Host{
		Spikes: &a.State.Spikes, Threshold: a.State.Tunables.SpikeMs.Load(), Commands: a.State.Table,
		Histogram: func(cmd *command.Command) *latency.Histogram {
			return a.State.Counters.Commands[cmd.Index].Latency.Load()
		},
	}
}

// debug is what DEBUG works with. Whether it is allowed depends on where the client came from when it connected:
// enable-debug-command local means clients of this machine, and embedded sessions are such.
func (of source) debug(c *command.Call) debug.Host {
	a := of(c)
	allowed := a.State.Options.DebugRemote || a.State.Options.Debug && !a.IsRemote
	return debug.Host{Allowed: allowed, Save: a.State.Save, Logger: a.State.Options.Logger, Client: a.Client.ID()}
}
