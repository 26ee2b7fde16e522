package db

// stepsBetween is how many steps a transaction makes before it asks whether to go on. A step takes some tens of
// nanoseconds to a few microseconds.
const stepsBetween = 256

func (t *Tx) setInterrupt(f func() error) { t.interrupt = f }

// roomFrom is how many bytes that are read at once are many.
const roomFrom = 1 << 20

func (t *Tx) setRoom(f func(n int) error) { t.room = f }

func (t *Tx) held() int {
	if t.check() != nil {
		return 0
	}
	if t.captured != nil {
		return t.base.Held() + t.captured.Len()
	}
	return t.base.Held()
}

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

func (s *Store) interruptibleKeyspace(f func() error) Keyspace {
	k := s.Keyspace()
	k.interrupt = f
	return k
}
