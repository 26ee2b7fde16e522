package db

import (
	"cmp"
	"iter"
	"slices"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// Keyspace is a handle on all keys of a namespace: what concerns several keys at once, or keys that are not known by
// name.
type Keyspace struct {
	handle
	interrupt func() error // asked by Keys and Scan; nil: never
}

// Keyspace returns a handle on the store's keys. It reads nothing.
func (s *Store) Keyspace() Keyspace { return Keyspace{handle: s.handle("")} }

// Keyspace returns a handle on the keys, inside the transaction. It reads nothing.
func (t *Tx) Keyspace() Keyspace { return Keyspace{handle: t.handle("")} }

// Pair is a key and a string value.
type Pair struct {
	Key   string
	Value []byte
}

// KeyInfo is a key and its type.
type KeyInfo struct {
	Key  string
	Type Type
}

// KeyScanOptions narrow a scan of the keys.
type KeyScanOptions struct {
	// Match is a glob pattern that keys must match. Default: all keys.
	Match string
	// Count is about how many keys one call visits. Default: 10.
	Count int
	// Type is what keys must hold. Default: anything.
	Type Type
}

// Delete deletes keys and returns how many of them existed, all in one commit. O(1) a key.
func (k Keyspace) Delete(keys ...string) (int, error) {
	return k.count(writing, keys, structures.Key.Delete)
}

// count returns how many of the keys it is true of.
func (k Keyspace) count(a access, keys []string, is func(structures.Key) (bool, error)) (int, error) {
	return callKeys(k.handle, a, keys, func(t *Tx) (n int, err error) {
		for _, key := range keys {
			ok, err := is(structures.Key{Txn: t.txn(), Key: key})
			if err != nil {
				return n, err
			}
			if ok {
				n++
			}
		}
		return n, nil
	})
}

// Exists returns how many of the keys exist; a key that is named twice counts twice. O(1) a key.
func (k Keyspace) Exists(keys ...string) (int, error) {
	return k.count(reading, keys, func(key structures.Key) (bool, error) {
		typ, err := key.Type()
		return typ != TypeNone, err
	})
}

// Get returns the values of several strings, in the order of the keys; nil stands for a key that does not exist or
// holds something else. O(length) a key.
func (k Keyspace) Get(keys ...string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	at := collectAt(values)
	err := k.doKeys(reading, keys, func(t *Tx) error {
		return structures.GetMany(t.txn(), keys, func(i int, value []byte) bool {
			at(i, value)
			return true
		})
	})
	return owned(values, err)
}

// Visit calls visit with the value of each of several strings, in the order of the keys, until it returns false, all at
// one moment; nil stands for a key that does not exist or has another type. The slice is valid during the call only,
// and visit may not use the store or change the transaction: it is the form that copies nothing.
func (k Keyspace) Visit(keys []string, visit func(i int, value []byte) bool) error {
	return k.visitKeys(keys, func(t *Tx) error { return structures.GetMany(t.txn(), keys, visit) })
}

// Put sets several strings, whatever the keys held before, in one commit. The keys have no deadline afterwards.
// O(length) a key.
func (k Keyspace) Put(pairs ...Pair) error { return k.PutWith(pairs) }

// PutWith is Put with the options of String.Put but IfEqual and IfNotEqual. A condition is about all of the keys. O(length) a key.
func (k Keyspace) PutWith(pairs []Pair, options ...WriteOption) error {
	keys := pairKeys(pairs)
	ok, err := callKeys(k.handle, writing, keys, func(t *Tx) (bool, error) {
		o, err := t.setOptions(options)
		if err != nil {
			return false, err
		}
		return putPairs(t, keys, pairs, o)
	})
	return held(ok, options, err)
}

func pairKeys(pairs []Pair) []string {
	keys := make([]string, len(pairs))
	for i := range pairs {
		keys[i] = pairs[i].Key
	}
	return keys
}

// putPairs says whether the condition holds for all keys.
func putPairs(t *Tx, keys []string, pairs []Pair, o structures.SetOptions) (bool, error) {
	if o.If > structures.IfPresent || o.Compare != nil || o.Get {
		return false, structures.ErrSyntax
	}
	if slices.ContainsFunc(pairs, func(p Pair) bool { return len(p.Value) > structures.MaxString }) {
		return false, structures.ErrTooLong
	}
	for i := 0; o.If != 0 && i < len(keys); i++ {
		typ, err := (structures.Key{Txn: t.txn(), Key: keys[i]}).Type()
		if err != nil || !o.If.Holds(typ != TypeNone) {
			return false, err
		}
	}
	o.If = 0
	for i := range pairs {
		if i%bitcask.PrefetchDepth == 0 {
			t.base.Prefetch(t.ns, keys[i:])
		}
		s := structures.String{Txn: t.txn(), Key: pairs[i].Key}
		if _, err := s.Set(pairs[i].Value, o); err != nil {
			return false, err
		}
		s.Txn.Yield()
	}
	return true, nil
}

// Scan returns some keys and the cursor that continues the scan; cursor 0 starts it, and a next cursor of 0 ends it. A
// key that exists from the start of the scan to its end is returned exactly once. O(o.Count); names are not kept in
// memory, so the name of a string costs a read of its record.
func (k Keyspace) Scan(cursor uint64, o KeyScanOptions) (keys []KeyInfo, next uint64, err error) {
	if o.Count <= 0 {
		o.Count = structures.DefaultScanCount
	}
	from, ok := structures.HashOf(cursor)
	if !ok {
		return nil, 0, nil
	}
	seen, last := 0, uint64(0)
	next, err = k.scanIn(from, func(t *Tx, h uint64, key []byte, typ Type) bool {
		at := structures.CursorOf(h)
		if seen >= o.Count && at != last {
			return false
		}
		seen, last = seen+1, at
		if (o.Type == TypeNone || o.Type == typ) && (o.Match == "" || structures.MatchStep((*txn)(t), o.Match, key)) {
			keys = append(keys, KeyInfo{Key: string(key), Type: typ})
		}
		return true
	})
	return keys, structures.CursorOf(next), err
}

// scan visits the live keys whose hashes are at least from, in the order of the hashes, until visit refuses one. It
// returns the hash of that one, 0 if there is none. A store's stripes are locked one after the other.
func (k Keyspace) scan(from uint64, visit func(h uint64, key []byte, typ Type) bool) (next uint64, err error) {
	return k.scanIn(from, func(_ *Tx, h uint64, key []byte, typ Type) bool { return visit(h, key, typ) })
}

// scanIn is scan for a visit that uses the transaction in which a key is visited.
func (k Keyspace) scanIn(from uint64, visit func(t *Tx, h uint64, key []byte, typ Type) bool) (next uint64, err error) {
	stopped := false
	for stripe := keydir.StripeOf(from); stripe < keydir.Stripes && !stopped; stripe++ {
		err := k.doStripe(stripe, func(t *Tx) error {
			if k.tx == nil && k.interrupt != nil {
				t.interrupt = k.interrupt
				t.steps = stepsBetween // a stripe may have few keys
			}
			failed := (*txn)(t).Step(0)
			err := t.eachKey(k.ns, stripe, from, func(h uint64, key []byte, typ Type) bool {
				if failed == nil && !visit(t, h, key, typ) {
					stopped, next = true, h
				}
				if failed == nil {
					failed = (*txn)(t).Step(1)
				}
				return !stopped && failed == nil
			})
			return cmp.Or(err, failed)
		})
		if err != nil {
			return 0, err
		}
	}
	return next, nil
}

// Keys returns the keys that match a glob pattern, in no particular order. O(all keys): it is meant for looking around. On a store it
// takes the way of All.
func (k Keyspace) Keys(pattern string) (keys []string, err error) {
	add := func(t *Tx, key []byte) {
		if pattern == "*" || structures.MatchStep((*txn)(t), pattern, key) {
			keys = append(keys, string(key))
		}
	}
	if k.tx != nil {
		_, err = k.scanIn(0, func(t *Tx, _ uint64, key []byte, _ Type) bool {
			add(t, key)
			return true
		})
		return keys, err
	}
	var w bitcask.Walk
	for more := true; more && err == nil; {
		more, err = k.walkOn(&w, func(t *Tx, key []byte, _ Type) { add(t, key) })
	}
	return keys, err
}

// All ranges over the keys and their types, in no particular order. See the package documentation on iterators: it
// reads in pages, so the loop may change the keys. On a store it goes through windows of some hundred thousand keys in the order of
// the log, and keeps 8 MiB and the names of a 256th of the collections for that.
func (k Keyspace) All() iter.Seq2[KeyInfo, error] {
	if k.tx != nil {
		return scanPages(k.handle, func(cursor uint64) ([]KeyInfo, uint64, error) {
			return k.Scan(cursor, KeyScanOptions{Count: pageSize})
		})
	}
	return func(yield func(KeyInfo, error) bool) {
		var w bitcask.Walk
		var page []KeyInfo
		add := func(_ *Tx, key []byte, typ Type) { page = append(page, KeyInfo{Key: string(key), Type: typ}) }
		for more := true; more; page = page[:0] {
			var err error
			if more, err = k.walkOn(&w, add); err != nil {
				yieldError(k.handle, err, yield)
				return
			}
			for _, key := range page {
				if !yield(key, nil) {
					return
				}
			}
		}
	}
}

// walkOn is a step of a walk, with the live keys that it finds. It returns whether there is another.
func (k Keyspace) walkOn(w *bitcask.Walk, visit func(t *Tx, key []byte, typ Type)) (more bool, err error) {
	stripe, gather := w.Stripe()
	if stripe == keydir.Stripes {
		return false, nil
	}
	var others []uint64
	err = k.walkIn(stripe, func(t *Tx) (err error) {
		if gather {
			return t.gather(k.ns, w, func(key []byte, typ Type) bool {
				visit(t, key, typ)
				return (*txn)(t).Step(1) == nil
			})
		}
		space := t.store.base.Space(k.ns)
		others, err = t.base.Page(w, k.ns, func(key, _ []byte) {
			if !t.keyGone(space, key) {
				visit(t, key, TypeString)
			}
		})
		return err
	})
	for i := 0; i < len(others) && err == nil; i++ {
		h := others[i]
		err = k.walkIn(keydir.StripeOf(h), func(t *Tx) error {
			return t.eachKey(k.ns, keydir.StripeOf(h), h, func(now uint64, key []byte, typ Type) bool {
				if now == h {
					visit(t, key, typ)
				}
				return now == h
			})
		})
	}
	return true, err
}

// walkIn is doStripe that asks whether to go on, before fn and after it.
func (k Keyspace) walkIn(stripe int, fn func(t *Tx) error) error {
	return k.doStripe(stripe, func(t *Tx) error {
		t.interrupt = k.interrupt
		if err := (*txn)(t).Step(stepsBetween); err != nil {
			return err
		}
		err := fn(t)
		return cmp.Or(err, (*txn)(t).Step(0))
	})
}

// Len is the number of keys of the namespace, those included that have expired
// and wait to be reaped. O(1).
func (s *Store) Len() int { return s.base.Len(s.ns) }

// Len is the number of keys of the namespace as the transaction sees it, those
// included that have expired and wait to be reaped. O(collections written in
// this transaction). 0 when the transaction has ended.
func (t *Tx) Len() int {
	if t.ended.Load() {
		return 0
	}
	return t.base.Len(t.ns)
}
