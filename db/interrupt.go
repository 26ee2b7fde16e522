package db

// stepsBetween is how many steps a transaction makes before it asks whether to go on. A step takes some tens of
// nanoseconds to a few microseconds.
const stepsBetween = 256

// SetInterrupt makes calls that take long ask f now and then whether to go on: about every 256 elements, or comparisons
// of a pattern of so many bytes. Once f returns an error, the call that asked ends with it, and so does the whole
// transaction:
// nothing of it is committed. What a call has given to a visitor until then is a part of its result. f must not use the
// store. nil takes it away.
func (t *Tx) SetInterrupt(f func() error) { t.interrupt = f }

// roomFrom is how many bytes that are read at once are many.
const roomFrom = 1 << 20

// SetRoom makes calls ask f before they read more than 1 MiB at once into memory, with the bytes, or up to an eighth
// more: the value of a string, a field or an element, and for Key.Dump twice what it returns. The call ends with the
// error of f, if it returns one. f must not use the store. nil takes it away, and so does the end of the transaction.
func (t *Tx) SetRoom(f func(n int) error) { t.room = f }

// Room is called before n bytes are read into memory.
func (t *txn) Room(n int) error {
	if n <= roomFrom || t.room == nil {
		return nil
	}
	return t.room(n)
}

// Step is called by walks that take long, with the work since the last call, in steps. An error ends them.
func (t *txn) Step(work int) error {
	if t.interrupt == nil {
		return nil
	}
	return t.ask(work)
}

// ask asks if it is time to. An error stays, and ends the transaction.
func (t *txState) ask(work int) error {
	if t.stopped != nil {
		return t.stopped
	}
	if t.steps += work; t.steps < stepsBetween {
		return nil
	}
	t.steps = 0
	if t.stopped = t.interrupt(); t.stopped != nil && t.err == nil {
		t.err = t.stopped
	}
	return t.stopped
}

// InterruptibleKeyspace is Keyspace, of which Keys and Scan ask f as Tx.SetInterrupt says.
func (s *Store) InterruptibleKeyspace(f func() error) Keyspace {
	k := s.Keyspace()
	k.interrupt = f
	return k
}
