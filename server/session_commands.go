package server

import (
	"slices"

	"github.com/stavedb/stave/server/command"
)

// SessionCommands are the commands that change the session itself, or run within it.
func SessionCommands() []*command.Command {
	return slices.Concat(connectionCommands, authCommands, transactionCommands, watchCommands, pubSubCommands)
}

// sessionOf is the session that a command is executed for. The assertion cannot fail: the host of every call is made by
// NewSession.
func sessionOf(c *command.Call) *Session { return c.Host.Session.(*Session) }

// onSession makes a handler of a function that works on the session itself. Handlers of package
// command know no session, so that they cannot come to depend on one.
func onSession(run func(*Session, *command.Call) error) func(*command.Call) error {
	return func(c *command.Call) error { return run(sessionOf(c), c) }
}

// flush adds what the session has counted to the figures of all, for a command that shows them.
func (s *Session) flush() {
	s.flushStats()
	s.noteFigures()
}

// end makes the session end once its replies are sent.
func (s *Session) end() { s.closed = true }

// drop ends the session of a user that is gone. What an EXEC executes after that is nobody's.
func (s *Session) drop() {
	s.who.setUser(s.server.Users.Default(), false)
	s.closed = true
}

// saveLater makes the EXEC that runs save at its end.
func (s *Session) saveLater() { s.saveDue = true }
