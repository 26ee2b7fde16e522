package server

import "github.com/stavedb/stave/server/command"

// WATCH, and what EXEC makes of it.

var watchCommands = []*command.Command{
	{
		Name: "watch", Arity: -2, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.RunsInsideMulti, Group: command.GroupTransactions,
		Keys: command.ManyKeys("RO"), Since: "2.2.0", Complexity: "O(1) a key", Run: onSession(watchCommand),
		Summary: "Makes the next EXEC depend on that none of the keys has changed.", Syntax: "key [key ...]",
	},
	{
		Name: "unwatch", Arity: 1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy, Group: command.GroupTransactions,
		Since: "2.2.0", Complexity: "O(n), n being the number of watched keys", Summary: "Forgets all watched keys.",
		Run: onSession(func(s *Session, c *command.Call) error { s.unwatch(); return c.OK() }),
	},
}

func watchCommand(s *Session, c *command.Call) error {
	if s.queue != nil {
		return command.Error("ERR WATCH inside MULTI is not allowed")
	}
	if s.watch == nil {
		s.watch = s.host.Store.NewWatch()
	}
	if err := s.watch.Add(c.Tx, c.Strings(1)...); err != nil {
		return err
	}
	s.client.watched.Store(int64(s.watch.Len()))
	return c.OK()
}

// unwatch forgets what the session watches.
func (s *Session) unwatch() {
	if s.watch != nil {
		s.watch.Close()
		s.watch = nil
		s.client.watched.Store(0)
	}
}
