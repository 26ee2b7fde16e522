package server

import "github.com/stavedb/stave/db"

// begin runs the command of s.call as one atomic unit of the store over the keys it names: their locks are held, and no
// others, until the commit. Inside the unit the handler finds the transaction in call.tx.
func (s *Session) begin(command *Command, args [][]byte) error {
	s.keys = command.appendKeys(s.keys[:0], args)
	return s.unit(command.isWrite(), s.keys, s.inTx)
}

// unit runs fn in a transaction over keys. No keys at all means the whole store.
func (s *Session) unit(write bool, keys []string, fn func(*db.Tx) error) error {
	if write {
		return s.space.UpdateKeys(keys, fn)
	}
	return s.space.ViewKeys(keys, fn)
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
