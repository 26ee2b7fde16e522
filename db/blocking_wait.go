package db

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Wait is an action to take as soon as one of several keys holds something, such as popping an element of a list.
type Wait struct {
	// Keys are tried in this order; the first that exists is taken.
	Keys []string
	// Type is the type that it must hold: TypeList, TypeSortedSet or TypeStream. A key that acquires another type is
	// noticed only if it has been renamed, moved or swapped to its name.
	Type Type
	// Others are further keys that Do touches.
	Others []string
	// Do is called with a key that holds Type, once; after an error it is rolled back. It may run on another goroutine,
	// within the transaction that has just written the key, so it must neither use the store, which fails with
	// ErrNested, nor wait. If it panics, that transaction is rolled back, its caller gets the panic, and the wait ends
	// with an error.
	Do func(tx *Tx, key string) error
	// Ready reports whether Do would find what it wants at a key that holds Type, for an element of a stream is not
	// taken by the first who sees it. A waiter that is not ready keeps its place. It may only read, and is called as Do
	// is. With it there are no Others. Default: every key that holds Type is one for Do.
	Ready func(tx *Tx, key string) bool
	// Missing lets Do be called with a key that is missing as well, and once a key has been deleted, has expired or has
	// been replaced by one of another type: for who waits for something that went with the key, such as a group of a
	// stream. It is for TypeStream.
	// Default: the wait goes on.
	Missing bool

	// due returns in how long a key that holds Type and is not Ready may become so by the time alone, as entries do that
	// have been pending for long; 0 or less: it is. It is called with the key locked, and again when that time has come.
	due func(tx *Tx, key string) time.Duration
}

// ready reports whether Do would find what it wants at a key that holds Type.
func (w *Wait) ready(t *Tx, key string) bool { return w.Ready == nil || w.Ready(t, key) }

// isDue reports whether Do would find at a key what it is for the time to bring.
func (w *Wait) isDue(t *Tx, key string) bool { return w.due != nil && w.due(t, key) <= 0 }

// awaited is a key and the type that it is to hold.
type awaited struct {
	nsKey
	typ Type
}

// Waiter is a Wait in the queues of its keys. Who came first is served first.
type Waiter struct {
	core    *core
	wait    Wait
	ns      int
	spots   []*list.Element // in the queues of the keys
	claimed bool            // it is being served, or has left
	wake    func()
	timers  map[string]*time.Timer // by key: when it is due; Wait.due

	done   chan struct{} // closed when the two below are set
	ticket Ticket
	err    error
}

// deferral is a key to be offered after the end of its transaction, because a waiter for it, or for a key that was
// filled before it, uses other keys that the transaction has not locked.
type deferral struct {
	nsKey
	others []string // that its first waiter touches, if known
	due    *Waiter  // the waiter whose time has come
}

// errUnserved ends waiters that were to be served by a transaction that was rolled back.
var errUnserved = errors.New("db: the transaction that served a waiter was rolled back")

// Try does what w says with the first of its keys that exists. It returns ErrNotFound if none does, and ErrWrongType if
// that key holds something else.
func (t *Tx) Try(w Wait) error {
	if err := t.check(); err != nil {
		return err
	}
	for _, key := range w.Keys {
		switch typ, err := t.Key(key).Type(); {
		case err != nil:
			return err
		case typ == TypeNone && w.Missing:
			return w.Do(t, key)
		case typ == TypeNone:
			continue
		case typ != w.Type:
			return ErrWrongType
		case !w.ready(t, key) && !w.isDue(t, key):
			continue
		}
		return w.Do(t, key)
	}
	return ErrNotFound
}

// Enqueue lets w be done by the next transaction after which one of its keys holds something. The transaction must have
// locked the keys for writing and found that there is nothing to be had. wake, unless it is nil, is called once when
// the waiter has been served; like Do it must not wait, but it may use the store: nothing is locked then. A transaction
// that has ended returns a waiter that has ended with ErrTxDone.
func (t *Tx) Enqueue(w Wait, wake func()) *Waiter {
	w.Keys, w.Others = slices.Clone(w.Keys), slices.Clone(w.Others)
	waiter := &Waiter{core: t.store.core, wait: w, ns: t.ns, wake: wake, done: make(chan struct{})}
	err := t.check()
	if err == nil && !t.store.watchers.enqueue(waiter) {
		err = ErrClosed
	}
	if err != nil {
		waiter.claimed = true
		t.store.guard.run(func() { waiter.finish(0, err) })
	} else if w.due != nil {
		for _, key := range waiter.wait.Keys {
			waiter.offerIn(w.due(t, key), key)
		}
	}
	return waiter
}

// offerIn has a key offered to the waiter after some time, unless it is claimed until then.
func (w *Waiter) offerIn(d time.Duration, key string) {
	o := &w.core.watchers
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case w.claimed:
	case w.timers[key] != nil:
		w.timers[key].Reset(d)
	default:
		if w.timers == nil {
			w.timers = make(map[string]*time.Timer)
		}
		view := &Store{core: w.core, ns: w.ns}
		w.timers[key] = time.AfterFunc(d, func() { view.serveAfter([]deferral{{nsKey: nsKey{w.ns, key}, due: w}}) })
	}
}

// Await does what w says, at once or when one of the keys has been written, and returns when that is as durable as the
// sync mode promises. It returns the error of ctx if that ends first, and ErrWrongType if a key holds another type now;
// a key that acquires another type later is skipped. Waiters for one key are served first come, first served, within
// the transaction that fills it:
// nobody else can take what it was filled with. A waiter whose Others are not locked there is served right after that
// commit, as are waiters for keys filled later.
func (s *Store) Await(ctx context.Context, w Wait) error {
	waiter, err := s.tryOrEnqueue(w)
	if waiter == nil {
		return err
	}
	defer waiter.Cancel() // it is waiting for nothing any more
	select {
	case <-waiter.Done():
	case <-ctx.Done():
		if waiter.Cancel() {
			return ctx.Err()
		}
		<-waiter.Done() // it was being served
	}
	ticket, err := waiter.Result()
	if err != nil {
		return err
	}
	return s.WaitDurable(ticket)
}

// tryOrEnqueue does what w says, or returns the waiter that it is now.
func (s *Store) tryOrEnqueue(w Wait) (waiter *Waiter, err error) {
	a := writing
	// A read of a stream, other than one of a group, writes nothing. What a store follows is applied with the keys
	// locked for writing, so nothing comes in between.
	if s.opts.ReadOnly && w.Type == TypeStream && !w.Missing {
		a = reading
	}
	first, err := s.beginKeys(a, slices.Concat(w.Keys, w.Others))
	if err != nil {
		return nil, err
	}
	defer first.recycle()
	tx := &first.Tx
	tx.shown = true
	err = s.guard.call(func(tx *Tx) error { return tx.Try(w) }, tx)
	if !errors.Is(err, ErrNotFound) || len(w.Keys) == 0 {
		return nil, tx.end(err)
	}
	queued, done := tx.Enqueue(w, nil), false
	defer func() {
		if !done { // the commit has failed, or another waiter's Do has panicked in it
			queued.Cancel()
		}
	}()
	if err := tx.end(nil); err != nil {
		return nil, err
	}
	done = true
	return queued, nil
}

// Done is closed when the waiter has been served.
func (w *Waiter) Done() <-chan struct{} { return w.done }

// Result is the error of Do, or the ticket of the commit that it is part of, once Done is closed.
func (w *Waiter) Result() (Ticket, error) { return w.ticket, w.err }

// Cancel removes the waiter from the queues, and reports whether that was in time: otherwise it has been served, or is
// being served, and Done tells when.
func (w *Waiter) Cancel() bool {
	o := &w.core.watchers
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.claimed {
		return false
	}
	o.claim(w)
	return true
}

// finish notifies a waiter of its outcome.
func (w *Waiter) finish(ticket Ticket, err error) {
	if w.err == nil {
		w.ticket, w.err = ticket, err
	}
	close(w.done)
	if w.wake != nil {
		w.wake()
	}
}

// shut ends all waiters when the store closes.
func (o *watchers) shut() {
	each(o.claimAll(), func(w *Waiter) { w.finish(0, ErrClosed) })
}

// holds says whether the transaction has locked the keys: to look one up that it has not is an error.
func (t *Tx) holds(keys []string) bool {
	if d := t.effects.serving; d != nil && slices.Equal(keys, d.others) {
		return true
	}
	return !slices.ContainsFunc(keys, func(key string) bool {
		_, _, err := t.base.Find(t.ns, key)
		return err != nil
	})
}

// serveWaiters serves the waiters from what the transaction has written so far, as its end does. It reports false if a
// waiter is left that uses keys which the transaction has not locked: see serverside.DB.
func (t *Tx) serveWaiters() bool {
	c := t.effects
	if c == nil || c.insideServe || t.ended.Load() {
		return true
	}
	if t.store.watchers.keys.Load() == 0 { // effects are noted for listeners and the ordered keys
		c.fillsServed, c.notified = len(c.fills), len(c.touched)
		return true
	}
	defer t.base.FailOnDisk(t.base.FailOnDisk(nil)) // they are served now
	for ; c.fillsServed < len(c.fills); c.fillsServed++ {
		p := c.fills[c.fillsServed]
		if len(c.deferred) > 0 || c.fillsServed > 0 && c.queue != nil && len(*c.queue) > 0 {
			c.deferred = append(c.deferred, deferral{nsKey: p}) // others were first
			continue
		}
		t.serveKey(&Tx{txState: t.txState, ns: p.ns}, p)
	}
	for ; c.notified < len(c.touched); c.notified++ {
		t.store.watchers.note(c.touched[c.notified])
	}
	return len(c.deferred) == 0
}

// serveKey serves the waiters for a key, as long as it holds what they want. What they do may touch other keys.
func (t *Tx) serveKey(in *Tx, p nsKey) {
	t.shown = true // to Do, which may keep it
	t.effects.insideServe = true
	defer func() { t.effects.insideServe = false }()
	for {
		typ, err := in.Key(p.key).Type()
		if err != nil {
			return // a read error is for readers to report
		}
		if typ != TypeStream {
			t.serveMissing(in, p)
		}
		if typ == TypeNone {
			return
		}
		if typ == TypeStream {
			t.serveStream(in, p)
			return
		}
		w, claimed := t.store.watchers.next(awaited{p, typ}, in)
		switch {
		case w == nil:
			return
		case !claimed:
			t.effects.deferred = append(t.effects.deferred, deferral{nsKey: p, others: w.wait.Others})
			return
		}
		t.serveWaiter(in, p, w)
	}
}

// serveWaiter does what a waiter that has been claimed waits for.
func (t *Tx) serveWaiter(in *Tx, p nsKey, w *Waiter) {
	t.effects.finished = append(t.effects.finished, w) // also if Do panics: with an error
	t.interrupt, t.room = nil, nil                     // the transaction is not about its own client alone any more
	sp := in.Savepoint()
	t.write = t.write && !t.applies // who waits reads what a master has sent, and takes nothing of it
	w.err = t.store.guard.call(func(in *Tx) error { return w.wait.Do(in, p.key) }, in)
	t.write = t.write || t.applies
	if w.err != nil {
		w.err = in.rollbackAfter(sp, w.err)
	}
}

// serveStream serves the waiters for a stream that are ready, in their order: what one of them reads is there for the
// next one.
func (t *Tx) serveStream(in *Tx, p nsKey) {
	o := &t.store.watchers
	for _, w := range o.queue(awaited{p, TypeStream}) {
		var ready bool
		_ = t.store.guard.call(func(in *Tx) error { // which returns nil
			ready = w.wait.ready(in, p.key)
			return nil
		}, in)
		if d := t.effects.serving; !ready && d != nil && d.due == w {
			after := w.wait.due(in, p.key)
			if ready = after <= 0; !ready {
				w.offerIn(after, p.key)
			}
		}
		if ready && o.claimed(w) {
			t.serveWaiter(in, p, w)
		}
	}
}

// serveMissing serves the waiters for a stream that is gone, as far as they want that.
func (t *Tx) serveMissing(in *Tx, p nsKey) {
	o := &t.store.watchers
	for _, w := range o.queue(awaited{p, TypeStream}) {
		if w.wait.Missing && o.claimed(w) {
			t.serveWaiter(in, p, w)
		}
	}
}

// notifyWaiters is the end of a transaction with effects: those it served are notified, and those it could not serve
// are served by transactions of their own. Nothing is locked any more.
func (t *Tx) notifyWaiters(ticket Ticket, err error) {
	c := t.effects
	t.effects = nil
	defer t.serveOthers(c, err)
	each(c.finished, func(w *Waiter) { w.finish(ticket, err) })
}

// serveOthers serves the waiters that the transaction could not serve.
func (t *Tx) serveOthers(c *effects, err error) {
	if d := c.serving; d != nil && err != nil && len(c.finished) > 0 {
		*c.queue = slices.Insert(*c.queue, 0, deferral{nsKey: d.nsKey}) // what these could not have is there for the others
	}
	if err != nil || len(c.deferred) == 0 {
		return
	}
	if d := c.serving; d != nil {
		// Waiters for the same key come next, those for keys that serving it has filled come last.
		same := 0
		if c.deferred[0].nsKey == d.nsKey {
			same = 1
		}
		*c.queue = slices.Concat(c.deferred[:same], *c.queue, c.deferred[same:])
		return
	}
	t.store.serveAfter(c.deferred)
}

// serveAfter is serve for a commit that stands, whatever comes of that.
func (s *Store) serveAfter(queue []deferral) {
	if err := s.serve(queue); err != nil {
		s.opts.Logger.Error("waiters not served", "err", err)
	}
}

// serve offers keys to their waiters, each in a transaction of its own. What that defers is queued. In a store that
// follows they read.
func (s *Store) serve(queue []deferral) error {
	var errs []error
	defer func() {
		if len(queue) > 0 { // a Do has panicked; the panic continues when the others have been served
			s.serveAfter(queue)
		}
	}()
	for len(queue) > 0 {
		d := queue[0]
		queue = queue[1:]
		tx, err := s.Begin(!s.opts.ReadOnly, append([]string{d.key}, d.others...)...)
		if err == nil {
			tx.effects = &effects{fills: []nsKey{d.nsKey}, serving: &d, queue: &queue}
			_, err = tx.End(nil)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", d.key, err))
		}
	}
	return errors.Join(errs...)
}
