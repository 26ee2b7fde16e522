package session

import (
	"time"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/tracking"
)

// Lending is what a session lends to commands of rooms that know none: those about the server, and about tracking.
type Lending struct {
	State           *shared.State
	Client          *clients.Client
	User            *acl.User
	Tracked         *tracking.Reads
	IsTLS, IsRemote bool

	Flush       func()                 // adds what the session has counted to the figures of all
	NoteBuffers func()                 // notes its buffers, which others see when a command has ended
	End         func()                 // ends the session once its replies are sent
	Drop        func()                 // ends the session of a user that is gone
	SaveLater   func()                 // makes the EXEC that runs save at its end
	Follow      func(*replication.Ask) // makes the connection a replica's, when the replies have left; nil without one
	// AfterExec lets fn run at the end of the EXEC that runs, when nothing is locked.
	AfterExec func(fn func())
	// Wait lets the session wait for what does not happen on this server; late replies when the time is over.
	Wait func(c *command.Call, timeout time.Duration, late func(*command.Call)) error
}

// Lend returns that. The command ends before the session goes on.
func (s *Session) Lend() Lending {
	lending := Lending{
		State: s.server, Client: &s.client, User: s.who.user, Tracked: &s.tracked, IsTLS: s.isTLS, IsRemote: s.isRemote,
		Flush: s.counts.flush, NoteBuffers: s.noteFigures,
		End:       func() { s.closed = true },
		Drop:      func() { s.who.setUser(s.server.Users.Default(), false); s.closed = true }, // what an EXEC executes after that is nobody's
		SaveLater: func() { s.multi.saveDue = true },
		AfterExec: func(fn func()) { s.multi.after = append(s.multi.after, fn) },
		Wait:      s.wait.long,
	}
	if s.now.Driven {
		lending.Follow = func(ask *replication.Ask) { s.follows = ask }
	}
	return lending
}

// ServeDashboard makes the session one of the dashboard: of a client at an address, about which nothing is known yet,
// whose commands are neither counted nor in SLOWLOG and LATENCY, and whose replies are no longer than mostReply.
func (s *Session) ServeDashboard(address string, mostReply int) {
	s.client.Remote, s.mostReply, s.client.Unnoted = address, mostReply, true
	s.who.startUnknown(false)
}
