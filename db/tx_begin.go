package db

import (
	"github.com/stavedb/stave/bitcask"
)

// Ticket identifies a commit that has been made but perhaps not yet synced. It is the sequence number after the last
// record of the commit, so a later commit has a higher one; zero means no commit.
type Ticket uint64

// Begin starts a transaction for callers that a closure does not suit, such as a server that answers many commands at
// once. It locks the given keys (of any namespace), or everything if none is given; no other keys may be touched. Every
// Begin is followed by one End; in between the goroutine that has the transaction uses nothing of the store but the Tx:
// unlike in View and Update, a nested use is not noticed, and code that may panic in between defers the End. Long
// values of strings are not copied: values given to the transaction must not change until End.
func (s *Store) Begin(write bool, keys ...string) (*Tx, error) {
	if err := s.guard.check(); err != nil {
		return nil, err
	}
	return s.begin(write, keys)
}

func (s *Store) begin(write bool, keys []string) (*Tx, error) {
	s.settle(access(write))
	var base *bitcask.Tx
	var err error
	if len(keys) > 0 {
		base, err = s.base.Begin(write, keys...)
	} else {
		base, err = s.base.BeginAll(write)
	}
	if err != nil {
		base.Recycle()
		return nil, err
	}
	return s.begunTx(base, write), nil
}

// begunTx is the transaction over a log's transaction that Begin or tryBegin has begun.
func (s *Store) begunTx(base *bitcask.Tx, write bool) *Tx {
	base.Borrow()
	t := s.newTx(base, write)
	t.begun = true
	return t
}

func (s *Store) tryBegin(write bool, onDisk error, keys ...string) (tx *Tx, ok bool, err error) {
	if err := s.guard.check(); err != nil {
		return nil, false, err
	}
	if write && s.clock.isBack() && !s.replica.is.Load() {
		return nil, false, nil // Begin settles that
	}
	base, ok, err := s.base.BeginInTurn(write, keys...)
	if err != nil {
		base.Recycle()
		return nil, false, err
	}
	if !ok {
		return nil, false, nil
	}
	base.FailOnDisk(onDisk)
	return s.begunTx(base, write), true, nil
}

func (s *Store) beginUnlessLocked(write bool, keys ...string) (tx *Tx, ok bool, err error) {
	if err := s.guard.check(); err != nil {
		return nil, false, err
	}
	s.settle(access(write))
	base, ok, err := s.base.BeginUnlessLocked(write, keys...)
	if err != nil {
		base.Recycle()
		return nil, false, err
	}
	if !ok {
		return nil, false, nil
	}
	return s.begunTx(base, write), true, nil
}

// End commits the transaction, or takes everything back if err is not nil, and
// unlocks. Everyone sees the commit at once; it is acknowledged, as the sync
// mode promises, when WaitDurable has returned for its ticket. A second End
// fails with ErrTxDone, and so does whatever else is done with the transaction.
func (t *Tx) End(err error) (Ticket, error) {
	switch {
	case t.ended.Load():
		return 0, ErrTxDone
	case !t.begun:
		return 0, ErrNotBegun
	case t.visit > 0 || t.effects != nil && t.effects.insideServe:
		return 0, ErrNested
	}
	defer t.abandon() // after a panic
	return t.finish(err)
}

// WaitDurable returns when the commit of the ticket, and all before it, are as
// durable as Options.Sync promises. One wait can stand for many commits: the
// highest ticket covers the others. It returns at once unless Options.Sync is
// SyncAlways.
func (s *Store) WaitDurable(t Ticket) error { return s.base.WaitDurable(uint64(t)) }

// Durable reports whether WaitDurable would return at once.
func (s *Store) Durable(t Ticket) bool { return s.base.Durable(uint64(t)) }

// Now is the moment of the transaction in Unix milliseconds, by the machine's clock.
func (t *Tx) Now() int64 { return t.now() }
