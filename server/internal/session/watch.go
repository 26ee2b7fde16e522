package session

import "github.com/stavedb/stave/server/command"

// WATCH is optimistic locking: EXEC does nothing and replies null if a watched key has changed, and the client tries again. Between
// WATCH and EXEC nothing is locked, so a client that never comes back holds up no one.

// watchCommands make the next EXEC depend on keys. UNWATCH within MULTI is queued, as in Redis:
// there it has no effect.
var watchCommands = []*command.Command{
	{Name: "watch", Arity: -2, Flags: command.OfSession | command.Fast | command.AllowBusy | command.RunsInsideMulti,
		Group: command.GroupTransactions, Keys: command.ManyKeys("RO"), Run: onSession(watchCommand)},
	{Name: "unwatch", Arity: 1, Flags: command.OfSession | command.Fast | command.AllowBusy, Group: command.GroupTransactions,
		Run: onSession(func(s *Session, c *command.Call) error { s.multi.unwatch(); return c.OK() })},
}

// watchCommand is WATCH. It runs in a transaction over the keys, so that no change of them can be
// missed. A key that is watched twice keeps its first moment.
func watchCommand(s *Session, c *command.Call) error {
	if s.multi.queue != nil {
		return command.Error("ERR WATCH inside MULTI is not allowed")
	}
	if s.multi.watch == nil {
		s.multi.watch = s.host.Store.NewWatch()
	}
	keys := c.Args.Strings(1)
	for _, key := range keys { // all or none: a command that has to read from the disk is executed again
		if _, err := c.Tx.Key(key).Exists(); err != nil {
			return err
		}
	}
	for _, key := range keys {
		before := s.multi.watch.Len()
		if err := s.multi.watch.Add(c.Tx, key); err != nil {
			return err
		}
		if s.multi.watch.Len() > before {
			s.multi.watchedBytes += heldByWatch + len(key)
		}
	}
	s.client.Watched.Store(int64(s.multi.watch.Len()))
	return c.OK()
}

// unwatch forgets what the session watches. It must be called at the end of every session that has watched something:
// the store notes changes of those keys until then.
func (m *transaction) unwatch() {
	s := m.session
	if m.watch != nil {
		m.watch.Close()
		m.watch, m.watchedBytes = nil, 0
		s.client.Watched.Store(0)
	}
}
