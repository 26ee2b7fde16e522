package pubsub

import "github.com/stavedb/stave/db"

// Unsent is what an EXEC or a script has published while it runs, which leaves at its end. Only its session uses it.
type Unsent struct {
	list  []Prepared // they wait for a transaction, if there will be one
	bytes int        // of all that was published, and of events of misses
}

// Reset begins an EXEC, or a script outside of one.
func (u *Unsent) Reset() { *u = Unsent{} }

// TakeRoom counts so many bytes more, unless they are too many.
func (u *Unsent) TakeRoom(size, most int) bool {
	if u.bytes+size > most {
		return false
	}
	u.bytes += size
	return true
}

// Add keeps a message for a transaction that has not begun, if there will be one.
func (u *Unsent) Add(p Prepared) { u.list = append(u.list, p) }

// Drop forgets the messages.
func (u *Unsent) Drop() { u.list = nil }

// With posts the messages with the commit of a transaction that has begun.
func (u *Unsent) With(tx *db.Tx, hub *Hub) (err error) {
	for _, p := range u.list {
		if failed := p.With(tx, hub); err == nil {
			err = failed
		}
	}
	u.list = nil
	return err
}

// Post posts the messages of a unit that turned out to need no transaction, with the ticket of what its session wrote
// before.
func (u *Unsent) Post(hub *Hub, ticket db.Ticket) {
	for i := range u.list {
		hub.Post(&u.list[i], ticket)
	}
	u.list = nil
}

// With posts a message with the commit of a transaction.
func (p Prepared) With(tx *db.Tx, hub *Hub) error {
	return tx.OnCommit(func(ticket db.Ticket) { hub.Post(&p, ticket) })
}
