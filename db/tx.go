package db

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask"
	commands "github.com/stavedb/stave/internal/effects"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
	"github.com/stavedb/stave/ttl"
)

// Tx is one atomic unit: everything read in it is from one moment, and
// everything written in it is one commit. It reads its own writes. A Tx is for
// one goroutine, within the closure that was given it: after its end, whatever
// is done with it, or with a handle of it, fails with ErrTxDone.
//
// A call that fails has changed nothing, whatever the reason: the closure may go on.
type Tx struct {
	*txState
	ns int
}

// txState is what the views of one transaction on several namespaces share.
type txState struct {
	store *Store
	base  *bitcask.Tx
	write bool
	begun bool  // by Begin: End may end it
	shown bool  // user code may have kept it: its memory is not used again
	saved bool  // the caller rolls back a call that fails
	visit int   // how many visits of the transaction run, whose callbacks change nothing
	clock int64 // Unix milliseconds: one moment for the whole transaction; 0 until it is needed
	gone  int64 // deadlines up to here have passed; set with clock
	err   error // first read error of an iterator

	interrupt func() error      // asked now and then by a call that takes long; nil: never
	steps     int               // since it was asked
	stopped   error             // what it has answered
	room      func(n int) error // asked before much is read at once; nil: never
	applies   bool              // it is what a master has sent: see origin.go

	origin      int64        // of the changes that follow
	observation *observation // of the call that this transaction is; nil: no observer

	over  bool        // base may not be used any more
	ended atomic.Bool // the same for user code that has the transaction, on whatever goroutine

	// Changes of the deadline index, to be rolled back with the transaction.
	deadlines []deadlineChange
	shownGone int64 // the latest deadline of what it found to be gone and did not delete; 0 if nothing (clock.go)
	deleted   int64 // and of what it did delete
	expired   int   // keys dropped because their time had come
	reaped    int   // and fields deleted because theirs had
	evicted   int   // and keys dropped to make room

	effects  *effects  // nil while no effects are wanted
	captured *captured // what the commit amounts to; nil unless that is captured

	group   *structures.NotedGroup // nil until it is needed
	groupNS int                    // the namespace of its stream
}

// firstTx is a unit and the first view of it, in one allocation.
type firstTx struct {
	unit  txState
	Tx    Tx
	spare *captured // for the next transaction, if this one is pooled
}

type deadlineChange struct {
	index *ttl.Deadlines
	space uint32
	key   string
	ms    int64 // before the change
	had   bool
}

var (
	// ErrNested is returned when a store is used within its own View or Update, or within a
	// callback that is called while keys are locked: that would wait for itself. Use the Tx. Within
	// a callback of a visit the transaction itself cannot be changed either.
	ErrNested = errors.New("db: store used inside its own View, Update or callback; use the Tx")
	// ErrTxDone is returned for whatever is done with a transaction that has
	// ended, or with a handle of it.
	ErrTxDone = bitcask.ErrTxDone
	// ErrNotBegun is returned by Tx.End for a transaction that the store ends by
	// itself, as View, Update and Wait do.
	ErrNotBegun = errors.New("db: End of a transaction that Begin has not made")
	// ErrNotLocked is returned for a key that a transaction has not been given: ViewKeys, UpdateKeys and Begin get the
	// keys that it may touch, and Wait has those of Do. The error names the key. Calls on all keys, such as Keyspace.Keys
	// and Tx.Flush, need View, Update, or Begin without keys.
	ErrNotLocked = bitcask.ErrNotLocked
	// ErrSavepoint is returned by Tx.RollbackTo for a savepoint of another
	// transaction, or of a part that was rolled back.
	ErrSavepoint = bitcask.ErrSavepoint
	// ErrNamespace is returned for a namespace beyond Options.Namespaces.
	ErrNamespace = errors.New("db: no such namespace")
)

func (s *Store) newTx(base *bitcask.Tx, write bool) *Tx {
	first := &firstTx{unit: txState{store: s, base: base, write: write, shown: true}}
	first.unit.clock, first.unit.gone = s.clock.read()
	first.unit.captured = s.capturing(write, nil)
	first.Tx = Tx{txState: &first.unit, ns: s.ns}
	return &first.Tx
}

// pool keeps the transactions of single calls for the next one, unless user code has seen them. A
// closure's own is never used again: the closure may have kept it.
var pool = sync.Pool{New: func() any { return new(firstTx) }}

// pooledTx is newTx for a transaction that no caller gets to see.
func (s *Store) pooledTx(base *bitcask.Tx, write bool) *firstTx {
	first := pool.Get().(*firstTx)
	first.unit = txState{store: s, base: base, write: write, deadlines: first.unit.deadlines, captured: s.capturing(write, first.spare), group: first.unit.group}
	first.Tx = Tx{txState: &first.unit, ns: s.ns}
	base.Borrow() // the caller waits for the commit with what it gave
	return first
}

// recycle returns a transaction of pooledTx to the pool. If a panic has prevented its end it is ended
// here, and everything rolled back.
func (f *firstTx) recycle() {
	const keep = 16 // changes of deadlines
	f.Tx.abandon()
	u := &f.unit
	if o := u.observation; o != nil {
		u.observation = nil
		u.store.observed(o)
	}
	if u.shown {
		return
	}
	clear(u.deadlines)
	u.deadlines = u.deadlines[:0]
	if cap(u.deadlines) > keep {
		u.deadlines = nil
	}
	if u.captured != nil {
		f.spare = u.captured
	}
	u.store, u.base, u.err, u.captured = nil, nil, nil, nil
	if u.group != nil {
		*u.group = structures.NotedGroup{}
	}
	pool.Put(f)
}

// check fails if the transaction has ended.
func (t *Tx) check() error {
	if t.ended.Load() {
		return ErrTxDone
	}
	return nil
}

// checkWrite fails if the transaction cannot be written to.
func (t *Tx) checkWrite() error {
	switch {
	case t.ended.Load():
		return ErrTxDone
	case !t.write:
		return ErrReadOnly
	case t.visit > 0:
		return ErrNested
	}
	return nil
}

// end is finish and the wait that the sync mode wants.
func (t *Tx) end(err error) error {
	ticket, err := t.finish(err)
	if err == nil {
		err = t.store.WaitDurable(ticket)
	}
	if t.observation != nil {
		t.observation.op.Err = err
	}
	return err
}

// finish commits, or rolls everything back if err is not nil, and unlocks. After a panic in it
// abandon does the rest.
func (t *Tx) finish(err error) (ticket Ticket, _ error) {
	if err == nil {
		err = t.err
	}
	t.base.FailOnDisk(nil)         // so is whatever is left to do
	t.interrupt, t.room = nil, nil // what follows is also about others, such as those whose wait it ends
	if t.effects != nil {
		return t.finishTracked(err)
	}
	if err == nil && t.write {
		ticket, err = t.commit()
	}
	t.release(err)
	return ticket, err
}

// commit commits what the transaction has written.
func (t *Tx) commit() (Ticket, error) {
	if t.store.replica.refuses() && !t.applies && t.base.Changed() {
		return 0, ErrReplica
	}
	if t.captured != nil {
		t.base.SetEffects(t.captured.take())
	}
	n, err := t.base.Commit()
	return Ticket(n), err
}

// finishTracked is finish for a transaction that others want to know of. It
// calls what users have given: Wait.Do before the commit, listeners after it,
// Enqueue's wake when nothing is locked any more. If one of these panics, or
// ends its goroutine, the rest is done all the same: before the commit
// everything is rolled back, after it the commit stands.
func (t *Tx) finishTracked(err error) (ticket Ticket, _ error) {
	outcome := errUnserved // until it is known
	defer func() {
		t.release(outcome)
		t.notifyWaiters(ticket, outcome)
	}()
	if err == nil {
		t.serveWaiters()
	}
	if err == nil && t.write {
		ticket, err = t.commit()
	}
	outcome = err
	if err == nil {
		if t.store.ordered != nil {
			t.reindex()
		}
		t.ended.Store(true) // listeners must not use it
		t.store.notifyListeners(ticket, t.effects.events, t.effects.changes, t.effects.hooks...)
	}
	return ticket, err
}

// release unlocks. Without a commit, everything is rolled back first.
func (t *Tx) release(err error) {
	t.over = true
	if t.shown {
		t.ended.Store(true)
	}
	if err != nil {
		t.undoDeadlines(0)
		t.foundDue(t.deleted, false)
	}
	t.base.Recycle()
	if t.shownGone > 0 {
		t.store.persistShown(t.shownGone)
	}
	if err == nil {
		t.store.counters.expired.Add(uint64(t.expired))
		t.store.counters.expiredFields.Add(uint64(t.reaped))
		t.store.counters.evicted.Add(uint64(t.evicted))
	}
}

// abandon rolls back a transaction that has not been ended: what ran in it has
// panicked, or has ended its goroutine.
func (t *Tx) abandon() {
	if !t.over {
		if t.observation != nil {
			t.observation.op.Err = errPanicked
		}
		_, _ = t.finish(errUnserved) // which is its result
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
	of        *txState
	base      bitcask.Savepoint
	deadlines int
	events    int
	changes   int
	hooks     int
	expired   int
	reaped    int
	captured  commands.Mark
}

// Savepoint marks this moment.
func (t *Tx) Savepoint() Savepoint {
	if t.ended.Load() {
		return Savepoint{}
	}
	sp := Savepoint{of: t.txState, base: t.base.Savepoint(), deadlines: len(t.deadlines), expired: t.expired, reaped: t.reaped, captured: t.captured.mark()}
	if t.effects != nil {
		sp.events, sp.changes, sp.hooks = len(t.effects.events), len(t.effects.changes), len(t.effects.hooks)
	}
	return sp
}

// RollbackTo rolls back everything done since sp. It fails with ErrSavepoint if
// that is not a moment of this transaction, and with ErrTxDone after its end;
// nothing has changed then.
func (t *Tx) RollbackTo(sp Savepoint) error {
	if err := t.checkWrite(); err != nil && !errors.Is(err, ErrReadOnly) {
		return err
	}
	if sp.of != t.txState || sp.deadlines > len(t.deadlines) {
		return ErrSavepoint
	}
	if err := t.rollbackTo(sp); err != nil {
		return err
	}
	if t.err == t.stopped {
		t.err = nil
	}
	t.stopped = nil
	return nil
}

// rollbackTo is RollbackTo to a savepoint of this transaction, which stays interrupted if it was.
func (t *Tx) rollbackTo(sp Savepoint) error {
	if err := t.base.RollbackTo(sp.base); err != nil {
		return err
	}
	t.undoDeadlines(sp.deadlines)
	t.captured.rollbackTo(sp.captured)
	t.expired, t.reaped = sp.expired, sp.reaped
	t.foundDue(t.deleted, false) // it is there still, when the transaction is committed
	if c := t.effects; c != nil {
		c.events, c.dropped = c.events[:min(sp.events, len(c.events))], c.dropped[:0]
		c.changes = c.changes[:min(sp.changes, len(c.changes))]
		c.hooks = c.hooks[:min(sp.hooks, len(c.hooks))]
	}
	return nil
}

// rollbackAfter is rollbackTo after err, which it returns.
func (t *Tx) rollbackAfter(sp Savepoint, err error) error {
	if failed := t.rollbackTo(sp); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

func (t *Tx) setRollsBack() { t.saved = true }

// whole runs a call that writes so that it has done nothing if it fails, or panics: whoever goes on after that commits
// no part of it.
func (t *Tx) whole(call func() error) (err error) {
	if t.saved {
		return call()
	}
	sp, done := t.Savepoint(), false
	defer func() {
		if !done && !t.ended.Load() {
			err = t.rollbackAfter(sp, err)
		}
	}()
	err = call()
	done = err == nil
	return err
}

// Use returns the same transaction on another namespace.
func (t *Tx) Use(namespace int) (*Tx, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if namespace < 0 || namespace >= t.store.opts.Namespaces {
		return nil, ErrNamespace
	}
	return &Tx{txState: t.txState, ns: namespace}, nil
}

// Namespace is the number of the namespace that the transaction works on.
func (t *Tx) Namespace() int { return t.ns }

// Writable reports whether the transaction may write.
func (t *Tx) Writable() bool { return t.write }

// fail keeps the first read error of an iterator, for View or Update to return. After the end of
// the transaction it has no use.
func (t *Tx) fail(err error) {
	if !t.ended.Load() && t.err == nil {
		t.err = err
	}
}

// now is the moment of the transaction. A call on a handle reads the clock when it
// first needs it, which most do not; a closure has the moment of its begin.
func (t *txState) now() int64 {
	if t.clock == 0 {
		t.clock, t.gone = t.store.clock.read()
	}
	return t.clock
}

// passed is the moment up to which deadlines have passed: now, or a later one if the clock has been put back.
func (t *txState) passed() int64 {
	_ = t.now()
	return t.gone
}

// due says whether the time of a deadline has come.
func (t *txState) due(ms int64) bool { return ms <= t.passed() }

// settable fails for a deadline that is still to come by the clock, and has been shown to have passed before that was put back.
func (t *txState) settable(ms int64) error {
	if t.due(ms) && ms > t.clock {
		return ErrClock
	}
	return nil
}

// rand is the source of chance of commands that pick at random.
func (t *Tx) rand() uint64 { return rand.Uint64() }

// eachKey calls fn for the live keys of a stripe. See bitcask.Tx.EachKey.
func (t *Tx) eachKey(ns, stripe int, from uint64, fn func(h uint64, key []byte, typ Type) bool) (err error) {
	space := t.store.base.Space(ns)
	failed := t.base.EachKey(ns, stripe, from, func(h uint64, key []byte, typ keydir.Type) bool {
		var gone bool
		if gone, err = t.hides(ns, space, key, typ); gone || err != nil {
			return err == nil
		}
		return fn(h, key, typ.Public())
	})
	return cmp.Or(failed, err)
}

// gather is Gather of a walk, for live keys.
func (t *Tx) gather(ns int, w *bitcask.Walk, fn func(key []byte, typ Type) bool) (err error) {
	space := t.store.base.Space(ns)
	failed := t.base.Gather(w, ns, func(key []byte, typ keydir.Type) bool {
		var gone bool
		if gone, err = t.hides(ns, space, key, typ); gone || err != nil {
			return err == nil
		}
		return fn(key, typ.Public())
	})
	return cmp.Or(failed, err)
}

// hides reports whether a key that is in the index has expired.
func (t *Tx) hides(ns int, space uint32, key []byte, typ keydir.Type) (gone bool, err error) {
	if t.keyGone(space, key) {
		return true, nil
	}
	if typ != keydir.Hash {
		return false, nil
	}
	return t.fieldsGone(ns, space, string(key))
}

// keyGone reports whether the deadline of a key has passed.
func (t *Tx) keyGone(space uint32, key []byte) bool {
	ms, ok := t.store.deadlines.Get(space, string(key))
	if ok = ok && t.due(ms); ok {
		t.foundDue(ms, false)
	}
	return ok
}
