package db

import (
	"container/list"
	"slices"
)

// The queues of waiters: one for each awaited key and type, first come first. A waiter for several keys stands in
// several queues, and whoever claims it takes it out of all.

// enqueue is called with the keys locked, so the next writer of one sees the waiter. It reports false if the store is
// closed.
func (o *watchers) enqueue(w *Waiter) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if o.queues == nil {
		o.queues, o.waiting = make(map[awaited]*list.List), make(map[Type]int)
	}
	for _, key := range w.wait.Keys {
		at := w.at(key)
		if o.queues[at] == nil {
			o.queues[at] = list.New()
		}
		w.spots = append(w.spots, o.queues[at].PushBack(w))
	}
	o.waiting[w.wait.Type] += len(w.wait.Keys)
	o.waits.Add(int64(len(w.wait.Keys)))
	o.count(len(w.wait.Keys))
	return true
}

func (w *Waiter) at(key string) awaited { return awaited{nsKey{w.ns, key}, w.wait.Type} }

// claim takes a waiter out of the queues for good. The mutex is held.
func (o *watchers) claim(w *Waiter) {
	w.claimed = true
	for _, t := range w.timers {
		t.Stop()
	}
	for i, key := range w.wait.Keys {
		at := w.at(key)
		if o.queues[at].Remove(w.spots[i]); o.queues[at].Len() == 0 {
			delete(o.queues, at)
		}
	}
	o.waiting[w.wait.Type] -= len(w.wait.Keys)
	if len(o.queues) == 0 {
		o.queues = nil // a map does not shrink
	}
	o.waits.Add(-int64(len(w.wait.Keys)))
	o.count(-len(w.wait.Keys))
}

// claimed claims a waiter, unless it has been served or has left.
func (o *watchers) claimed(w *Waiter) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w.claimed {
		return false
	}
	o.claim(w)
	return true
}

// next claims the first waiter for a key, unless it needs keys that the transaction has not locked: then it is returned
// unclaimed.
func (o *watchers) next(at awaited, t *Tx) (w *Waiter, claimed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.queues[at]
	if q == nil {
		return nil, false
	}
	w = q.Front().Value.(*Waiter)
	if !t.holds(w.wait.Others) {
		return w, false
	}
	o.claim(w)
	return w, true
}

// claimAll empties all queues for good.
func (o *watchers) claimAll() (all []*Waiter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, q := range o.queues {
		for q.Len() > 0 {
			w := q.Front().Value.(*Waiter)
			o.claim(w)
			all = append(all, w)
		}
	}
	return all
}

// queue lists the waiters for a key.
func (o *watchers) queue(at awaited) (list []*Waiter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q := o.queues[at]; q != nil {
		for e := q.Front(); e != nil; e = e.Next() {
			list = append(list, e.Value.(*Waiter))
		}
	}
	return list
}

// Waiters returns how many waiters there are for the keys, or for any keys without one. A waiter for several keys
// counts for each.
func (s *Store) Waiters(keys ...string) (n int) {
	o := &s.watchers
	if all := int(o.waits.Load()); all == 0 || len(keys) == 0 {
		return all
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range keys {
		for typ := range o.waiting {
			if q := o.queues[awaited{nsKey{s.ns, key}, typ}]; q != nil {
				n += q.Len()
			}
		}
	}
	return n
}

// waitedKeys returns how many keys are waited for, in all namespaces, and how many of them by a waiter that is to be served
// when the key is missing.
func (s *Store) waitedKeys() (keys, missing int) {
	o := &s.watchers
	if o.waits.Load() == 0 {
		return 0, 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting[TypeStream] == 0 {
		return len(o.queues), 0
	}
	for at, q := range o.queues {
		for e := q.Front(); at.typ == TypeStream && e != nil; e = e.Next() {
			if e.Value.(*Waiter).wait.Missing {
				missing++
				break
			}
		}
	}
	return len(o.queues), missing
}

// wanted reports whether a key that has been given elements of a type may serve a waiter at the end of the transaction,
// in the order of such gifts. Like Redis it checks for a waiter for that type, and for a waiter for that key: at the
// end the key may hold another type.
func (o *watchers) wanted(p nsKey, typ Type) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting[typ] == 0 {
		return false
	}
	for held := range o.waiting {
		if o.queues[awaited{p, held}] != nil {
			return true
		}
	}
	return false
}

// missed reports whether a waiter for a key is to be served when it is missing.
func (o *watchers) missed(p nsKey) bool {
	return slices.ContainsFunc(o.queue(awaited{p, TypeStream}), func(w *Waiter) bool { return w.wait.Missing })
}

// missedIn lists such keys of some namespaces.
func (o *watchers) missedIn(namespaces []int) (keys []nsKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at, q := range o.queues {
		if at.typ != TypeStream || !slices.Contains(namespaces, at.ns) {
			continue
		}
		for e := q.Front(); e != nil; e = e.Next() {
			if e.Value.(*Waiter).wait.Missing {
				keys = append(keys, at.nsKey)
				break
			}
		}
	}
	return keys
}
