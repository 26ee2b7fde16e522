package db

import "github.com/stavedb/stave/internal/serverside/calls"

// Changes are for caches of what has been read: which keys have changed, by whatever means. They are taken where WATCH
// takes what it needs (effects.touch), so that nothing which WATCH notices is missed, and where keys and fields expire,
// which WATCH finds out by itself. A transaction keeps them in their order, drops those after a savepoint that it rolls
// back to, and reports them between its commit and the unlocking of its stripes: who reads a key later, waits for that.
// So a reader that registers a key with the key locked, and is informed of each change of registered keys, never keeps
// an old value without being told.
//
// Several commands of several clients may share a transaction (Begin). setOrigin says whose a change is. noteRead puts
// a read into the order of the changes: one that comes after a change of the same transaction has seen it. Both are for
// servers (package serverside), as is the change that has them.

// Change is something that a commit has done to a key.
type Change struct {
	Namespace int
	Key       string // "" for a whole namespace
	// Whole is set for a namespace that has been emptied or swapped.
	Whole bool
}

// OnChanges calls fn once for each commit from now on, with the keys that it has changed, in order, those of all
// namespaces. A key may come more than once; a commit that has changed none is not reported. fn runs within the commit,
// while the keys are locked: it must be quick, and must neither wait nor use the store, which fails with ErrNested. It
// may get only a part of the changes of transactions that run when OnChanges is called. It is called before the
// functions of OnEvents and Tx.OnCommit get the same commit. If fn panics, the writer gets the panic after all other
// listeners have got the commit, which stands. Until stop is called each write costs a little more.
func (s *Store) OnChanges(fn func(changes []Change, ticket Ticket)) (stop func()) {
	return s.onChanges(func(all []calls.Change, ticket uint64) {
		changes := make([]Change, 0, len(all))
		for _, c := range all {
			if !c.Read {
				changes = append(changes, Change{c.Namespace, c.Key, c.Whole})
			}
		}
		fn(changes, Ticket(ticket))
	})
}

func (s *Store) onChanges(fn func(changes []calls.Change, ticket uint64)) (stop func()) {
	l := s.listen(&listener{changes: fn, shut: func() {}, foreign: true})
	return func() { s.unlisten(l) }
}

func (t *Tx) setOrigin(origin int64) { t.origin = origin }

func (t *Tx) noteRead(key string) bool {
	if t.ended.Load() || t.effects == nil || len(t.effects.changes) == 0 {
		return false
	}
	c := t.effects
	c.changes = append(c.changes, calls.Change{Namespace: t.ns, Key: key, Read: true, Origin: t.origin})
	return true
}

// changed notes a change of a key, if there is a listener for it.
func (t *txn) changed(key string) {
	if t.store.listeners.wantChanges.Load() {
		t.addChange(calls.Change{Namespace: t.ns, Key: key, Origin: t.origin})
	}
}

// changedWhole notes an operation on the namespace.
func (t *txn) changedWhole() {
	if t.store.listeners.wantChanges.Load() {
		t.addChange(calls.Change{Namespace: t.ns, Whole: true, Origin: t.origin})
	}
}

// addChange adds a change, unless it repeats the last one.
func (t *txn) addChange(one calls.Change) {
	c := t.recording()
	if n := len(c.changes); n == 0 || c.changes[n-1] != one {
		c.changes = append(c.changes, one)
	}
}
