package session

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/shared"
)

// Within MULTI the session answers QUEUED and does nothing else; multi.go has the queue. WATCH is
// optimistic locking: EXEC does nothing and replies null if a watched key has changed, and the
// client tries again. Between WATCH and EXEC nothing is locked, so a client that never comes back
// holds up no one.

// transactionCommands begin and end transactions. Their flag RunsInsideMulti keeps them out of the
// queue.
var transactionCommands = command.InGroup(command.GroupTransactions, []*command.Command{
	{Name: "multi", Arity: 1, Flags: command.OfSession | command.Fast | command.AllowBusy | command.RunsInsideMulti,
		Run: onSession(multiCommand)},
	{Name: "exec", Arity: 1, Flags: command.OfSession | command.SkipSlowlog | command.RunsInsideMulti, Run: onSession(execCommand)},
	{Name: "discard", Arity: 1, Flags: command.OfSession | command.Fast | command.AllowBusy | command.RunsInsideMulti,
		Run: onSession(discardCommand)},
})

// watchCommands make the next EXEC depend on keys. UNWATCH within MULTI is queued, as in Redis:
// there it has no effect.
var watchCommands = []*command.Command{
	{Name: "watch", Arity: -2, Flags: command.OfSession | command.Fast | command.AllowBusy | command.RunsInsideMulti,
		Group: command.GroupTransactions, Keys: command.ManyKeys("RO"), Run: onSession(watchCommand)},
	{Name: "unwatch", Arity: 1, Flags: command.OfSession | command.Fast | command.AllowBusy, Group: command.GroupTransactions,
		Run: onSession(func(s *Session, c *command.Call) error { s.multi.unwatch(); return c.OK() })},
}

// multiCommand is MULTI. A nested one is an error that does not spoil the transaction, as in Redis.
func multiCommand(s *Session, c *command.Call) error {
	if s.multi.queue != nil {
		return errNestedMulti
	}
	s.multi.queue = &queue{}
	return c.OK()
}

// discardCommand is DISCARD. It ends the watch too.
func discardCommand(s *Session, c *command.Call) error {
	if s.multi.queue == nil {
		return errDiscardNoMulti
	}
	s.multi.queue = nil
	s.multi.unwatch()
	return c.OK()
}

// execCommand runs the queue as one unit of the store: one commit, isolated from all others. As in
// Redis, a command that fails does not stop or undo the others; its own writes are rolled back. The
// transaction locks the watched keys with the others, so that none can change between the check and
// the commit. The limit of the reply is for all commands together. The queue is taken off the
// session first: whatever happens, MULTI is over.
func execCommand(s *Session, c *command.Call) error {
	q := s.multi.queue
	if q == nil {
		return errExecNoMulti
	}
	s.multi.queue = nil
	watch := s.multi.watch
	defer func() {
		if s.multi.queue == nil { // otherwise EXEC is executed again
			s.multi.unwatch()
		}
	}()
	if q.Aborted {
		return errExecAbort
	}
	defer s.multi.doAfter()
	if s.script.lent != nil {
		defer s.script.lent.EndExec()
	}
	s.multi.verify(q)
	s.mail.unsent.Reset()
	space := s.host.Store
	limit := s.out.Len() + s.server.MostReply()
	s.room.mustNotRepeat = !q.isRepeatable()
	defer func() { s.room.mustNotRepeat = false }()
	body := func(tx *db.Tx) error {
		if watch != nil {
			if changed, err := watch.Changed(tx); err != nil || changed {
				c.Out.NullArray()
				return err
			}
		}
		c.Out.Array(q.requests.Len())
		for r := range q.requests.All() {
			if err := s.multi.run(tx, r, limit); err != nil {
				return err
			}
		}
		return nil
	}
	keys := q.Keys
	if watch != nil {
		keys = append(keys, watch.Keys()...)
	}
	var err error
	switch {
	case q.WholeStore:
		err = s.unit.transact(q.Writes, nil, body)
	case len(keys) > 0:
		err = s.unit.transact(q.Writes, keys, body)
	default:
		if err = body(nil); err == nil {
			s.mail.unsent.Post(&s.server.Hub, s.unit.unsynced.Ticket)
		}
		s.mail.unsent.Drop()
	}
	if err != nil {
		// The SELECTs among the commands did not happen either.
		s.host.Store = space
	}
	if err == shared.ErrWouldWait || err == shared.ErrNoRoom {
		s.multi.queue = q
	}
	return err
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
	for _, key := range c.Args.Strings(1) {
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

// doAfter does what commands within EXEC have asked for, after the commit and with no key locked: a BGSAVE, REPLICAOF. They
// have their replies by then, so an error can only be seen in the log and in INFO (rdb_last_bgsave_status).
func (m *transaction) doAfter() {
	s := m.session
	if m.saveDue {
		m.saveDue = false
		_ = s.server.Save()
	}
	after := m.after
	m.after = nil
	for _, fn := range after {
		fn()
	}
}
