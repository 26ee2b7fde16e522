package server

import (
	"errors"

	"github.com/stavedb/stave/db"
)

// begin runs the command of s.call: if it names keys, as one atomic unit of the store over them. Their locks are held, and no
// others, until the commit. Inside the unit the handler finds the transaction in call.tx.
func (s *Session) begin() error {
	command, args := s.call.command, s.call.args
	if len(command.Keys) == 0 {
		return command.run(&s.call)
	}
	s.keys = command.appendKeys(s.keys[:0], args)
	if command.readsBeyond(args) {
		return s.unit(command.isWrite(), nil, s.inTx)
	}
	if command.startsWithKey() && len(s.keys) > 0 {
		s.call.first = s.keys[0]
	}
	return s.unit(command.isWrite(), s.keys, s.inTx)
}

// errPanicked takes a unit back whose command panicked. Nobody is told.
var errPanicked = errors.New("server: command panicked")

// unit runs fn in a transaction over keys, or over the whole store if there are none. It commits and does not wait for the
// disk: settle does, once for all commands whose replies leave together.
func (s *Session) unit(write bool, keys []string, fn func(*db.Tx) error) (err error) {
	before := s.out.Len()
	tx, err := s.space.Begin(write, keys...)
	if err != nil {
		return err
	}
	err = errPanicked
	defer func() {
		ticket, failed := tx.End(err)
		if write && failed == nil {
			s.owe(ticket, before)
		}
		err = failed
	}()
	err = fn(tx)
	return err
}

// owe notes a commit that the reply which starts at from must not leave before.
func (s *Session) owe(ticket db.Ticket, from int) {
	if s.ticket == 0 {
		s.unsettled = from
	}
	s.ticket = max(s.ticket, ticket)
}

// step runs one of several commands of a unit. A refusal becomes the command's reply, and failed: what the command had
// written is taken back, and the unit goes on. An error is a failure of the store, which ends the unit. limit is how long
// the output may become.
func (s *Session) step(c *call, limit int) (failed bool, err error) {
	from := s.out.Len()
	s.out.SetLimit(limit)
	var mark db.Savepoint
	write := c.command.isWrite()
	if write {
		mark = c.tx.Savepoint()
	}
	err = c.command.run(c)
	if err == nil {
		err = c.tellMisses()
	}
	if err == nil && s.out.Exceeded() {
		err = errReplyTooLarge
	}
	if err == nil || !isRefusal(err) {
		return false, err
	}
	if write {
		c.tx.RollbackTo(mark)
	}
	s.out.Truncate(from)
	s.replyError(errorText(err))
	return true, nil
}

// settle waits until what the commands have committed is as durable as the store's sync mode promises: until then no reply
// may leave. If that fails the replies are taken back, and the connection ends, for its client could not tell which of its
// commands the error is about.
func (s *Session) settle() {
	if s.ticket == 0 {
		return
	}
	err := s.space.WaitDurable(s.ticket)
	s.ticket = 0
	if err == nil {
		return
	}
	s.out.Truncate(s.unsettled)
	s.replyError(errorText(err))
	s.closed = true
	s.server.options.Logger.Error("writes could not be made durable; connection closed", "client", s.id, "error", err)
}

// setNamespace makes the session work on another namespace.
func (s *Session) setNamespace(n int) error {
	space, err := s.server.store.Use(n)
	if err != nil {
		return errDBIndex
	}
	s.space, s.namespace = space, n
	return nil
}
