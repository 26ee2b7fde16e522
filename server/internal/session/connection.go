package session

import (
	"bytes"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
)

// These commands work on the session alone and touch no key. Several of them change how later bytes
// of the same connection are understood or answered, so none of them is ever part of a batch.

// connectionCommands concern the connection they come from.
var connectionCommands = command.InGroup(command.GroupConnection, []*command.Command{
	{Name: "ping", Arity: -1, Flags: command.Describes | command.Fast | command.WhileSubscribed, Run: onSession(pingCommand)},
	{Name: "echo", Arity: 2, Flags: command.Describes | command.AnyState | command.Fast, Run: func(c *command.Call) error { c.Out.Bulk(c.Arg(1)); return nil }},
	{Name: "select", Arity: 2, Flags: command.AnyState | command.Fast, Run: onSession(selectCommand)},
	{
		Name: "quit", Arity: -1,
		Flags: command.OfSession | command.Fast | command.NoAuth | command.AllowBusy | command.RunsInsideMulti | command.WhileSubscribed,
		// Who reads the reply finds the session gone: a message that others publish then does not
		// count it any more.
		Run: onSession(func(s *Session, c *command.Call) error { s.Close(); return c.OK() }),
	},
	{Name: "reset", Arity: 1,
		Flags: command.OfSession | command.Fast | command.NoAuth | command.AllowBusy | command.RunsInsideMulti | command.WhileSubscribed,
		Run:   onSession(resetCommand)},
})

// pingCommand is PING. To a subscriber in RESP2 it replies in the form of a message, for only those
// may arrive there.
func pingCommand(s *Session, c *command.Call) error {
	switch {
	case len(c.Args) > 2:
		return command.ArityError("ping")
	case s.mail.isSubscribed(): // the reply looks like a message
		c.Out.Array(2)
		c.Out.BulkString("pong")
		c.Out.Bulk(bytes.Join(c.Args[1:], nil))
	case len(c.Args) == 1:
		c.Out.Simple("PONG")
	default:
		c.Out.Bulk(c.Arg(1))
	}
	return nil
}

// selectCommand is SELECT. It holds for this connection, and within MULTI for the commands queued
// after it.
func selectCommand(s *Session, c *command.Call) error {
	n, err := c.ParseDatabase(1)
	if err != nil {
		return err
	}
	return c.Done(s.setNamespace(n))
}

// resetCommand is RESET: everything that a connection can set is as it was at its start, but for what CLIENT SETINFO has
// set. A client that has authenticated as another user is the default one again, or must authenticate anew.
func resetCommand(s *Session, c *command.Call) error {
	s.multi.queue = nil
	s.multi.unwatch()
	s.tracked.Stop()
	s.server.Hub.UnsubscribeAll(&s.mail.subscriber)
	if err := s.setNamespace(0); err != nil {
		return err
	}
	s.out.SetVersion(2)
	s.client.Name.Store(&clients.NoText)
	s.client.NoEvict.Store(false)
	s.client.NoTouch.Store(false)
	s.client.ReadOnly.Store(false)
	s.client.Redirect.Store(false)
	s.replies = replyOn
	s.who.forget()
	c.Out.Simple("RESET")
	return nil
}

// closeHTTP closes the connection of a client that speaks HTTP, without a reply. The bytes after this line would be
// executed otherwise: a web page can make a browser send any text to this port.
func (s *Session) closeHTTP() {
	s.closed = true
	s.server.Options.Logger.Warn("a client spoke HTTP, perhaps an attack through a browser; connection closed",
		"client", s.id, "address", s.client.Remote)
}
