package server

// WATCH, and what EXEC makes of it.

var watchCommands = []*Command{
	{
		Name: "watch", Arity: -2, Flags: NoScript | Loading | Stale | Fast | AllowBusy | runsInsideMulti, Group: GroupTransactions,
		Keys: manyKeys("RO"), Since: "2.2.0", Complexity: "O(1) a key", run: onSession(watchCommand),
		Summary: "Makes the next EXEC depend on that none of the keys has changed.", Syntax: "key [key ...]",
	},
	{
		Name: "unwatch", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy, Group: GroupTransactions,
		Since: "2.2.0", Complexity: "O(n), n being the number of watched keys", Summary: "Forgets all watched keys.",
		run: onSession(func(s *Session, c *call) error { s.unwatch(); return c.ok() }),
	},
}

func watchCommand(s *Session, c *call) error {
	if s.queue != nil {
		return replyError("ERR WATCH inside MULTI is not allowed")
	}
	if s.watch == nil {
		s.watch = s.host.Store.NewWatch()
	}
	if err := s.watch.Add(c.tx, c.strings(1)...); err != nil {
		return err
	}
	s.client.watched.Store(int64(s.watch.Len()))
	return c.ok()
}

// unwatch forgets what the session watches.
func (s *Session) unwatch() {
	if s.watch != nil {
		s.watch.Close()
		s.watch = nil
		s.client.watched.Store(0)
	}
}
