package admin

import (
	"github.com/stavedb/stave/server/command"
)

// Redis's commands for its two files have a meaning for a log as well: SAVE and BGSAVE make all commits
// durable, BGREWRITEAOF merges. Nothing of them is needed for data to be kept.

func persistenceCommands(of source) []*command.Command {
	return command.InGroup(command.GroupServer, []*command.Command{
		{Name: "save", Arity: 1, Flags: command.Admin | command.NoScript | command.NoAsyncLoading | command.NoMulti,
			Run: of.on(func(a *Caller, c *command.Call) error { return c.Done(a.State.Save()) })},
		{Name: "bgsave", Arity: -1, Flags: command.Admin | command.NoScript | command.NoAsyncLoading, Run: of.on(bgsaveCommand)},
		{Name: "lastsave", Arity: 1, Flags: command.AnyState | command.Fast | command.Dangerous | command.AdminCategory,
			Run: of.on(func(a *Caller, c *command.Call) error { c.Out.Int(a.State.Counters.Saves.At.Load()); return nil })},
		{Name: "bgrewriteaof", Arity: 1, Flags: command.Admin | command.NoScript | command.NoAsyncLoading, Run: bgrewriteaofCommand},
	})
}

// bgsaveCommand is BGSAVE. A sync takes milliseconds, so it runs before the reply. Within EXEC the commit is
// still to come: the save follows it.
func bgsaveCommand(a *Caller, c *command.Call) error {
	if len(c.Args) > 2 || len(c.Args) == 2 && !c.Args.Is(1, "schedule") {
		return command.ErrSyntax
	}
	if c.Queued {
		a.SaveLater()
		c.Out.Simple("Background saving scheduled")
		return nil
	}
	if err := a.State.Save(); err != nil {
		return err
	}
	c.Out.Simple("Background saving started")
	return nil
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
