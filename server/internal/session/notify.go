package session

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
)

// heldByMiss is what a miss takes in memory until its transaction ends, besides the key, about.
const heldByMiss = 128

// notifyMisses reports the keys that a command was to read and that do not exist, if there is a listener. As in Redis
// looking at how a key is stored is not reading it. It runs inside the transaction, so the answer is that of the moment
// of the read, and the event comes with its end, in its place among the others; it costs a second search of each key.
func (m *mailbox) notifyMisses(c *command.Call) error {
	s := m.session
	v := s.server
	if !v.Notifier.Keymiss.Load() || v.Hub.Silent() || c.Tx == nil || c.Command.Flags&command.ReadOnly == 0 || c.Command.Container != nil {
		return nil
	}
	for _, key := range c.Command.AppendKeys(nil, c.Args) {
		switch exists, err := c.Tx.Key(key).Exists(); {
		case err != nil:
			return err
		case !exists:
			if c.Queued && !m.unsent.TakeRoom(len(key)+heldByMiss, m.most) {
				return errMessagesTooLarge
			}
			ns := c.Tx.Namespace()
			if err := c.Tx.OnCommit(func(ticket db.Ticket) { v.PublishEvent(ns, "keymiss", key, ticket) }); err != nil {
				return err
			}
		}
	}
	return nil
}
