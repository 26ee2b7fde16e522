package session

import (
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
)

// AUTH and HELLO make a connection that of a user. The check of a password takes tens of milliseconds, unless the same
// password has been right before; it holds no lock: EXEC makes it before it locks keys.

// authCommands may be sent before authentication. Both leave the event loop when they have a password to verify: see
// dispatch.VerifiesPassword.
var authCommands = command.InGroup(command.GroupConnection, []*command.Command{
	{Name: "auth", Arity: -2, Flags: command.OfSession | command.Fast | command.NoAuth | command.AllowBusy, Run: onSession(authCommand)},
	{Name: "hello", Arity: -1, Flags: command.OfSession | command.Fast | command.NoAuth | command.AllowBusy, Run: onSession(helloCommand)},
})

// credentials are the name and the password of AUTH or HELLO; ok is false if the request has none, or is wrong.
func credentials(c *command.Call) (name, password string, ok bool) {
	switch {
	case c.Command.Name == "hello":
		var h hello
		err := h.parse(c)
		return h.user, h.password, err == nil && h.authenticates
	case len(c.Args) == 2:
		return acl.DefaultName, c.Key(1), true
	case len(c.Args) == 3:
		return c.Key(1), c.Key(2), true
	}
	return "", "", false
}

// authCommand is AUTH. A password alone is that of the default user; if that one accepts any, Redis's text asks whether
// the client has not reached the wrong server. A failure leaves the session what it was: one that has authenticated
// stays so.
func authCommand(s *Session, c *command.Call) error {
	name, password, ok := credentials(c)
	switch {
	case !ok:
		return command.ErrSyntax
	case len(c.Args) == 2 && s.server.Users.Default().Rules().AcceptsAnyPassword():
		return command.Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	}
	return c.Done(s.authenticate(c.Host.Context, c.Key(0), name, password))
}
