package db

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/keydir"
)

// Watching and waiting. A Watch reports whether keys have changed (WATCH); a Waiter takes an element as soon as there
// is one (BLPOP). Both are kept in tables by key. While these are not empty, transactions give structures a Txn that
// notes which keys are written; otherwise a write costs one load of a counter. Registering holds the key's stripe, so
// no write falls in between.
//
// Before a transaction commits it marks the watches of the keys that it wrote, and serves the waiters of these keys,
// first come first served, within itself: nobody else can take what was pushed for a waiter, and a push and the pop
// that it allows are one commit. Waiters wake when the stripes are unlocked. One that needs a key that the transaction
// has not locked (BLMOVE's destination) is served right after it by a transaction of its own. Expiry is not noted: a
// watch asks at the end whether the keys that existed still do. Swapping namespaces marks the keys of either.

// nsKey is a key of a namespace.
type nsKey struct {
	ns  int
	key string
}

// watchers are the watches, and the waiters for elements. While there are none, a write costs one load of a counter.
type watchers struct {
	active atomic.Int64 // how many watched and awaited keys there are, and listeners to events
	keys   atomic.Int64 // without the listeners
	waits  atomic.Int64 // awaited keys alone, each once for each waiter

	mu      sync.Mutex // guards the rest, and Waiter.claimed
	closed  bool
	watches map[nsKey]map[*Watch]bool // whether the key existed when it was added
	queues  map[awaited]*list.List    // of *Waiter, first come first
	waiting map[Type]int              // keys in queues, by the type that they are to hold
}

// Watch reports whether keys have changed since they were added to it: whether they have been written, deleted, or have
// expired. With it a client computes from several reads and writes only if they still hold, without blocking anyone in
// between. Its methods are not safe for concurrent use.
type Watch struct {
	core    *core
	changed atomic.Bool
	existed map[nsKey]bool
}

// Watch starts to watch keys. Close ends it.
func (s *Store) Watch(keys ...string) (*Watch, error) {
	w := s.NewWatch()
	if err := s.ViewKeys(keys, func(tx *Tx) error { return w.Add(tx, keys...) }); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// NewWatch returns a watch of no keys.
func (s *Store) NewWatch() *Watch { return &Watch{core: s.core, existed: make(map[nsKey]bool)} }

// Add watches further keys, of the transaction's namespace, which the transaction must have locked. A key that is
// watched already stays so from the first time on.
func (w *Watch) Add(tx *Tx, keys ...string) error {
	if err := tx.check(); err != nil {
		return err
	}
	for _, key := range keys {
		p := nsKey{tx.ns, key}
		if _, watched := w.existed[p]; watched {
			continue
		}
		exists, err := tx.Key(key).Exists()
		if err != nil {
			return err
		}
		w.existed[p] = exists
		w.core.watchers.watch(p, w, exists)
	}
	return nil
}

// Len is how many keys are watched.
func (w *Watch) Len() int { return len(w.existed) }

// Keys are the keys that are watched, of all namespaces: those that Changed needs to be locked.
func (w *Watch) Keys() []string {
	keys := make([]string, 0, len(w.existed))
	for p := range w.existed {
		keys = append(keys, p.key)
	}
	return keys
}

// Changed says whether any of the keys has changed, at the moment of a transaction that has locked Keys. Only keys that
// existed can expire: one that had expired before is merely gone.
func (w *Watch) Changed(tx *Tx) (bool, error) {
	if err := tx.check(); err != nil {
		return false, err
	}
	if w.changed.Load() {
		return true, nil
	}
	for p, existed := range w.existed {
		if !existed {
			continue // had it been made since, that would have been noticed
		}
		in, err := tx.Use(p.ns)
		if err != nil {
			return false, err
		}
		if exists, err := in.Key(p.key).Exists(); err != nil || !exists {
			return true, err
		}
	}
	return false, nil
}

// Close ends the watch. It may be called twice.
func (w *Watch) Close() {
	for p := range w.existed {
		w.core.watchers.unwatch(p, w)
	}
	clear(w.existed)
}

// watch is called with the key locked, so the next writer sees that the number of watchers has grown.
func (o *watchers) watch(p nsKey, w *Watch, existed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count(1)
	if o.watches == nil {
		o.watches = make(map[nsKey]map[*Watch]bool)
	}
	if o.watches[p] == nil {
		o.watches[p] = make(map[*Watch]bool)
	}
	o.watches[p][w] = existed
}

func (o *watchers) unwatch(p nsKey, w *Watch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count(-1)
	if delete(o.watches[p], w); len(o.watches[p]) == 0 {
		delete(o.watches, p)
	}
}

// count counts watched and awaited keys.
func (o *watchers) count(n int) {
	o.keys.Add(int64(n))
	o.active.Add(int64(n))
}

// note marks the watches of a key as changed.
func (o *watchers) note(p nsKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.watches[p] {
		w.changed.Store(true)
	}
}

// notifySwapped marks the watches of two namespaces that are about to be swapped, as far as the key existed when it was
// added or exists in either, and returns the awaited keys. A key that has expired does not exist, deleted or not.
func (s *Store) notifySwapped(t *bitcask.Tx, a, b int) (awaited []nsKey) {
	o := &s.watchers
	o.mu.Lock()
	defer o.mu.Unlock()
	for p, watches := range o.watches {
		if p.ns != a && p.ns != b {
			continue
		}
		exists := s.existsIn(t, a, p.key) || s.existsIn(t, b, p.key)
		for w, existed := range watches {
			if existed || exists {
				w.changed.Store(true)
			}
		}
	}
	for at := range o.queues {
		if at.ns == a || at.ns == b {
			awaited = append(awaited, at.nsKey)
		}
	}
	return awaited
}

// existsIn reports whether a namespace has a key whose deadline has not passed, or cannot be asked.
func (s *Store) existsIn(t *bitcask.Tx, ns int, key string) bool {
	slot, _, err := t.Find(ns, key)
	if err != nil || slot.Type == keydir.None {
		return err != nil
	}
	deadline, ok := s.deadlines.Get(s.base.Space(ns), key)
	return !ok || deadline > s.clock.now()
}

// serveAll offers keys to their waiters.
func (s *Store) serveAll(keys []nsKey) error {
	queue := make([]deferral, len(keys))
	for i, p := range keys {
		queue[i].nsKey = p
	}
	return s.serve(queue)
}
