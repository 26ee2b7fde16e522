package db

// Ticket stands for a commit that has been made but perhaps not yet synced.
type Ticket uint64

// Begin starts a transaction for callers that a closure does not suit, such as
// a server that answers many commands at once. It locks the given keys (of any
// namespace), or everything if none is given; no other keys may be touched.
// Every Begin is followed by one End, on the same goroutine, which uses
// nothing of the store in between but the Tx: unlike in View and Update, a
// nested use is not noticed. Long values of strings are not copied: what is
// handed to the transaction stays as it is until End.
func (s *Store) Begin(write bool, keys ...string) (*Tx, error) {
	if len(keys) > 0 {
		log, err := s.log.Begin(write, keys...)
		if err != nil {
			return nil, err
		}
		log.Borrow()
		return s.newTx(log, write), nil
	}
	log, err := s.log.BeginAll(write)
	if err != nil {
		return nil, err
	}
	log.Borrow()
	return s.newTx(log, write), nil
}

// End commits the transaction, or takes everything back if err is not nil, and
// unlocks. Everyone sees the commit at once; it is acknowledged, as the sync
// mode promises, when WaitDurable has returned for its ticket.
func (t *Tx) End(err error) (Ticket, error) { return t.finish(err) }

// WaitDurable returns when the commit of the ticket, and all before it, are as
// durable as Options.Sync promises. One wait can stand for many commits: the
// highest ticket covers the others. It returns at once unless Options.Sync is
// SyncAlways.
func (s *Store) WaitDurable(t Ticket) error { return s.log.WaitDurable(uint64(t)) }

// Len is the number of keys of the namespace as the transaction sees it, those
// included that have expired and wait to be reaped. O(collections written in
// this transaction).
func (t *Tx) Len() int { return t.log.Len(t.ns) }

// Now is the moment of the transaction in Unix milliseconds, by the store's
// clock, which never goes backwards.
func (t *Tx) Now() int64 { return t.now() }
