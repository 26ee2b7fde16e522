package db

import (
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/ttl"
)

// Tx is one atomic unit: everything read in it is from one moment, and
// everything written in it is one commit. It reads its own writes. A Tx is for
// one goroutine, within the closure that was given it.
type Tx struct {
	*unit
	ns int
}

// unit is what the views of one transaction on several namespaces share.
type unit struct {
	store *Store
	log   *bitcask.Tx
	write bool
	clock int64 // Unix milliseconds: one moment for the whole transaction; 0 if nobody has asked
	err   error // first read error of an iterator

	own *firstTx // it, if it goes back to the pool

	// Changes of the deadline index, to be taken back with the transaction.
	deadlines []deadlineChange
	expired   int // keys dropped because their time had come
	reaped    int // and fields deleted because theirs had

	changes *changes // for watchers; nil while nothing was written that one may want to know
}

// firstTx is a unit and the first view of it, in one allocation.
type firstTx struct {
	unit unit
	Tx   Tx
}

type deadlineChange struct {
	index *ttl.Index
	space uint32
	key   string
	ms    int64 // before the change
	had   bool
}

var (
	// ErrNested is returned when a store is used within its own View or
	// Update: that would wait for itself for ever. Use the Tx.
	ErrNested = errors.New("db: store used inside its own View or Update; use the Tx")
	// ErrNamespace is returned for a namespace beyond Options.Namespaces.
	ErrNamespace = errors.New("db: no such namespace")
)

// handle is what all typed handles are: a key of a namespace, on a store or
// within a transaction.
type handle struct {
	store *Store // nil on a Tx
	tx    *Tx
	ns    int
	key   string
}

func (s *Store) handle(key string) handle { return handle{store: s, ns: s.ns, key: key} }
func (t *Tx) handle(key string) handle    { return handle{tx: t, ns: t.ns, key: key} }

// read returns the transaction for a method that only reads: the handle's own,
// or a new one that ends with done.
func (h handle) read() (*Tx, error) {
	if h.tx != nil {
		return h.tx, nil
	}
	return h.store.beginKey(false, h.key)
}

// write is read for a method that writes.
func (h handle) write() (*Tx, error) {
	if h.tx != nil {
		if !h.tx.write {
			return nil, bitcask.ErrReadOnly
		}
		return h.tx, nil
	}
	return h.store.beginKey(true, h.key)
}

// done ends what read or write began. On a handle of a transaction it returns
// err and no more: the closure decides.
func (h handle) done(t *Tx, err error) error {
	if h.tx != nil {
		return err
	}
	ticket, err := t.finish(err)
	log := t.store.log
	t.recycle()
	if err != nil {
		return err
	}
	return log.WaitDurable(uint64(ticket))
}

func (s *Store) beginKey(write bool, key string) (*Tx, error) {
	if err := s.guard.check(); err != nil {
		return nil, err
	}
	log, err := s.log.Begin(write, key)
	if err != nil {
		return nil, err
	}
	return s.ownTx(log, write), nil
}

func (s *Store) beginKeys(write bool, keys ...string) (*Tx, error) {
	if err := s.guard.check(); err != nil {
		return nil, err
	}
	log, err := s.log.Begin(write, keys...)
	if err != nil {
		return nil, err
	}
	return s.ownTx(log, write), nil
}

func (s *Store) beginStripe(stripe int) (*Tx, error) {
	if err := s.guard.check(); err != nil {
		return nil, err
	}
	log, err := s.log.BeginStripe(false, stripe)
	if err != nil {
		return nil, err
	}
	return s.ownTx(log, false), nil
}

func (s *Store) newTx(log *bitcask.Tx, write bool) *Tx {
	first := &firstTx{unit: unit{store: s, log: log, write: write, clock: s.clock.now()}}
	first.Tx = Tx{unit: &first.unit, ns: s.ns}
	return &first.Tx
}

// pool keeps the transactions of single calls for the next one. A closure's own
// is never used again: who knows who kept it.
var pool = sync.Pool{New: func() any { return new(firstTx) }}

// ownTx is newTx for a transaction that no caller gets to see.
func (s *Store) ownTx(log *bitcask.Tx, write bool) *Tx {
	first := pool.Get().(*firstTx)
	first.unit = unit{store: s, log: log, write: write, deadlines: first.unit.deadlines, own: first}
	first.Tx = Tx{unit: &first.unit, ns: s.ns}
	log.Borrow() // the caller waits for the commit with what it gave
	return &first.Tx
}

// recycle gives back a transaction that ownTx made. It is used no more.
func (t *Tx) recycle() {
	const keep = 16 // changes of deadlines
	first := t.own
	clear(first.unit.deadlines)
	first.unit.deadlines = first.unit.deadlines[:0]
	if cap(first.unit.deadlines) > keep {
		first.unit.deadlines = nil
	}
	first.unit.store, first.unit.log, first.unit.err = nil, nil, nil
	pool.Put(first)
}

// end is finish and the wait that the sync mode wants.
func (t *Tx) end(err error) error {
	ticket, err := t.finish(err)
	if err != nil {
		return err
	}
	return t.store.WaitDurable(ticket)
}

// finish commits, or takes everything back if err is not nil, and unlocks.
func (t *Tx) finish(err error) (Ticket, error) {
	if err == nil {
		err = t.err
	}
	if err == nil {
		t.HandOver()
	}
	var ticket uint64
	if err == nil && t.write {
		ticket, err = t.log.Commit()
	}
	if err != nil {
		t.undoDeadlines(0)
	} else if t.changes != nil {
		if t.store.ordered != nil {
			t.reindex()
		}
		t.store.listeners.tell(Ticket(ticket), t.changes.events)
	}
	t.log.End()
	if err == nil {
		t.store.counters.expired.Add(uint64(t.expired))
		t.store.counters.expiredFields.Add(uint64(t.reaped))
	}
	if t.changes != nil {
		t.tell(Ticket(ticket), err)
	}
	return Ticket(ticket), err
}

// cancel takes everything back and unlocks.
func (t *Tx) cancel() {
	t.undoDeadlines(0)
	t.log.End()
	if t.changes != nil {
		t.tell(0, errUnserved)
	}
}

func (t *Tx) undoDeadlines(to int) {
	for i := len(t.deadlines) - 1; i >= to; i-- {
		if c := t.deadlines[i]; c.had {
			c.index.Set(c.space, c.key, c.ms)
		} else {
			c.index.Clear(c.space, c.key)
		}
	}
	t.deadlines = t.deadlines[:to]
}

// Savepoint is a moment within a transaction.
type Savepoint struct {
	log       bitcask.Savepoint
	deadlines int
	events    int
}

// Savepoint marks this moment.
func (t *Tx) Savepoint() Savepoint {
	sp := Savepoint{log: t.log.Savepoint(), deadlines: len(t.deadlines)}
	if t.changes != nil {
		sp.events = len(t.changes.events)
	}
	return sp
}

// RollbackTo takes back everything done since sp.
func (t *Tx) RollbackTo(sp Savepoint) {
	t.undoDeadlines(sp.deadlines)
	t.log.RollbackTo(sp.log)
	if c := t.changes; c != nil {
		c.events, c.dropped = c.events[:sp.events], c.dropped[:0]
	}
}

// Use returns the same transaction on another namespace.
func (t *Tx) Use(namespace int) (*Tx, error) {
	if namespace < 0 || namespace >= t.store.opts.Namespaces {
		return nil, ErrNamespace
	}
	return &Tx{unit: t.unit, ns: namespace}, nil
}

// Namespace is the number of the namespace that the transaction works on.
func (t *Tx) Namespace() int { return t.ns }

// Writable reports whether the transaction may write.
func (t *Tx) Writable() bool { return t.write }

// fail keeps the first read error of an iterator, for View or Update to return.
func (t *Tx) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// now is the moment of the transaction. A call on a handle looks at the clock when it
// first needs it, which most do not; a closure has the moment of its begin.
func (t *unit) now() int64 {
	if t.clock == 0 {
		t.clock = t.store.clock.now()
	}
	return t.clock
}

// rand is the source of chance of commands that pick at random.
func (t *Tx) rand() uint64 { return rand.Uint64() }

// eachKey calls fn for the live keys of a stripe. See bitcask.Tx.EachKey.
func (t *Tx) eachKey(ns, stripe int, from uint64, fn func(h uint64, key []byte, typ Type) bool) error {
	space := t.store.log.Space(ns)
	return t.log.EachKey(ns, stripe, from, func(h uint64, key []byte, typ keydir.Type) bool {
		if ms, ok := t.store.deadlines.Get(space, string(key)); ok && ms <= t.now() {
			return true
		}
		if typ == keydir.Hash {
			if gone, err := t.fieldsGone(ns, space, string(key)); gone || err != nil {
				return err == nil // an error is met again, by whoever uses the key
			}
		}
		return fn(h, key, typ.Public())
	})
}
