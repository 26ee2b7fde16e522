package server

import (
	"errors"

	"github.com/stavedb/stave/db"
)

// begin runs the command of s.call as one atomic unit of the store over the keys it names: their locks are held, and no
// others, until the commit. Inside the unit the handler finds the transaction in call.tx.
func (s *Session) begin(command *Command, args [][]byte) error {
	s.keys = command.appendKeys(s.keys[:0], args)
	if command.Keys[0].First == 1 && len(s.keys) > 0 {
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
			if s.ticket == 0 {
				s.unsettled = before
			}
			s.ticket = max(s.ticket, ticket)
		}
		err = failed
	}()
	err = fn(tx)
	return err
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
