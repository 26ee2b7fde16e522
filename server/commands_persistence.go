package server

import (
	"time"

	"github.com/stavedb/stave/server/command"
)

// Redis's commands for its two files have a meaning for a log as well: SAVE and BGSAVE make all commits
// durable, BGREWRITEAOF merges. Nothing of them is needed for data to be kept.

var persistenceCommands = command.InGroup(command.GroupServer, []*command.Command{
	{Name: "save", Arity: 1, Flags: command.Admin | command.NoScript | command.NoAsyncLoading | command.NoMulti,
		Run: onSession(func(s *Session, c *command.Call) error { return c.Done(s.server.save()) })},
	{Name: "bgsave", Arity: -1, Flags: command.Admin | command.NoScript | command.NoAsyncLoading, Run: onSession(bgsaveCommand)},
	{Name: "lastsave", Arity: 1, Flags: command.AnyState | command.Fast | command.Dangerous | command.AdminCategory,
		Run: onSession(func(s *Session, c *command.Call) error { c.Out.Int(s.server.counters.Saves.At.Load()); return nil })},
	{Name: "bgrewriteaof", Arity: 1, Flags: command.Admin | command.NoScript | command.NoAsyncLoading, Run: bgrewriteaofCommand},
	{Name: "shutdown", Arity: -1, Flags: command.OfOperator | command.NoMulti | command.AllowBusy, Run: onSession(shutdownCommand)},
})

// bgsaveCommand is BGSAVE. A sync takes milliseconds, so it runs before the reply. Within EXEC the commit is
// still to come: the save follows it.
func bgsaveCommand(s *Session, c *command.Call) error {
	if len(c.Args) > 2 || len(c.Args) == 2 && !c.Args.Is(1, "schedule") {
		return command.ErrSyntax
	}
	if c.Queued {
		s.saveDue = true
		c.Out.Simple("Background saving scheduled")
		return nil
	}
	if err := s.server.save(); err != nil {
		return err
	}
	c.Out.Simple("Background saving started")
	return nil
}

// saveIfDue does what a BGSAVE within EXEC has asked for, after the commit and with no key locked. EXEC has its reply
// by then, so an error can only be seen in the log and in INFO (rdb_last_bgsave_status).
func (s *Session) saveIfDue() {
	if s.saveDue {
		s.saveDue = false
		_ = s.server.save()
	}
}

// bgrewriteaofCommand is BGREWRITEAOF: it starts one merge of the segments that the policy picks, also if they would not
// trigger one, and does not wait for it. A store that is opened without background merges has nobody to do it; MERGE
// does it in the client's own time.
func bgrewriteaofCommand(c *command.Call) error {
	switch {
	case c.Host.Store.Merger().Status().Running:
		return command.Error("ERR Background append only file rewriting already in progress")
	case !c.Host.Store.MergeSoon():
		return command.Error("ERR This store does not merge in the background. Use MERGE.")
	}
	c.Out.Simple("Background append only file rewriting started")
	return nil
}

// shutdownCommand is SHUTDOWN. There is no reply: the connection ends, as all others do. The log is complete
// without a save, so NOSAVE loses nothing. As in Redis a save that fails keeps the server running, unless FORCE
// says otherwise. NOW has no effect, for there are no replicas to wait for, and ABORT never finds a shutdown:
// once it has begun no command is executed any more.
func shutdownCommand(s *Session, c *command.Call) error {
	var save, noSave, now, force, abort bool
	for i := 1; i < len(c.Args); i++ {
		switch {
		case c.Args.Is(i, "nosave"):
			noSave = true
		case c.Args.Is(i, "save"):
			save = true
		case c.Args.Is(i, "now"):
			now = true
		case c.Args.Is(i, "force"):
			force = true
		case c.Args.Is(i, "abort"):
			abort = true
		default:
			return command.ErrSyntax
		}
	}
	switch {
	case abort && (save || noSave || now || force), save && noSave:
		return command.ErrSyntax
	case abort:
		return command.Error("ERR No shutdown in progress.")
	}
	if !noSave {
		if err := s.server.save(); err != nil && !force {
			return command.Error("ERR Errors trying to SHUTDOWN. Check logs.")
		}
	}
	if !s.server.shutDown() {
		return command.Error("ERR There is no server to shut down: this is an embedded session.")
	}
	s.server.options.Logger.Info("SHUTDOWN: ending", "client", s.id, "address", s.client.remote)
	s.closed = true
	return errNoReply
}

// save makes every commit so far durable. The log is all there is to save, and it is written at every commit: SAVE and
// BGSAVE make what it has durable at once, whatever the store's sync mode.
func (v *Server) save() error {
	start := time.Now()
	sequence := v.store.Log().Sequence() // before the sync: what comes meanwhile may not be part of it
	err := v.store.Sync()
	v.counters.Saves.Note(start, sequence, err)
	if err != nil {
		v.options.Logger.Error("a save failed", "error", err)
	}
	return err
}

// endedBy notes what ends a call of Serve, for SHUTDOWN. forget is to be called when Serve returns. end is called with
// v.mu held, so it must only cancel a context.
func (v *Server) endedBy(end func()) (forget func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.servings++
	id := v.servings
	v.serving[id] = end
	return func() {
		end()
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.serving, id)
	}
}

// shutDown ends every call of Serve, and reports whether there is one. It does not wait: the caller is a command, which
// Serve waits for.
func (v *Server) shutDown() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, end := range v.serving {
		end()
	}
	return len(v.serving) > 0
}
