package shared

import "github.com/stavedb/stave/db"

// Unsynced is the newest commit of a session that may not be as durable yet as its replies promise. Only the session and
// its driver use it.
type Unsynced struct {
	Ticket db.Ticket // of the commit; 0 for none
	From   int       // where in the output the reply of the oldest such commit starts
}

// Hold notes a commit that the reply which starts at from must not leave before. Replies that came before it in the
// output may leave: they depend on nothing that is not durable.
func (u *Unsynced) Hold(ticket db.Ticket, from int) {
	if u.Ticket == 0 {
		u.From = from
	}
	u.Ticket = max(u.Ticket, ticket)
}
