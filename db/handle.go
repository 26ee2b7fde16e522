package db

import "github.com/stavedb/stave/bitcask"

// A method of a handle is a single call: on a transaction it is a part of it, on a store it is a transaction of its own.
// All of them go through this file, where the end of that transaction is deferred: whatever panics in a call, or ends
// its goroutine, leaves no key locked and nothing half done. String.AppendTo and Key.Type first try without a transaction
// (TryGet and TryHas of bitcask.Store), and come here if that does not answer.

// access says what a single call does to its keys.
type access bool

const (
	reading access = false
	writing access = true
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

// within fails if the handle's transaction cannot do a.
func (h handle) within(a access) error {
	if a == writing {
		return h.tx.checkWrite()
	}
	return h.tx.check()
}

// call runs fn in the handle's transaction, or in one of its own over the
// handle's key.
func call[R any](h handle, a access, fn func(t *Tx) (R, error)) (R, error) {
	return callKeys(h, a, []string{h.key}, fn)
}

// callFound is call for what may not be there, which is ErrNotFound then, and no reason to roll back.
func callFound[R any](h handle, a access, fn func(t *Tx) (R, bool, error)) (R, error) {
	var ok bool
	r, err := call(h, a, func(t *Tx) (r R, err error) {
		r, ok, err = fn(t)
		return r, err
	})
	return r, found(ok, err)
}

// callKeys is call over several keys.
func callKeys[R any](h handle, a access, keys []string, fn func(t *Tx) (R, error)) (r R, err error) {
	if h.tx != nil {
		if err := h.within(a); err != nil {
			return r, err
		}
		if a == reading || h.tx.saved {
			return fn(h.tx)
		}
		err = h.tx.whole(func() error {
			r, err = fn(h.tx)
			return err
		})
		return r, err
	}
	first, err := h.store.beginKeys(a, keys)
	if err != nil {
		return r, err
	}
	defer first.recycle()
	r, err = fn(&first.Tx)
	return r, first.Tx.end(err)
}

// do is call for a method that returns nothing but an error.
func (h handle) do(a access, fn func(t *Tx) error) error { return h.doKeys(a, []string{h.key}, fn) }

// doKeys is do over several keys.
func (h handle) doKeys(a access, keys []string, fn func(t *Tx) error) error {
	_, err := callKeys(h, a, keys, func(t *Tx) (struct{}, error) { return struct{}{}, fn(t) })
	return err
}

// visit is do for a method that reads, and calls what the user has given with
// the keys locked. That may use neither the store nor change the transaction.
func (h handle) visit(fn func(t *Tx) error) error {
	return h.do(reading, func(t *Tx) error { return h.calling(t, fn) })
}

// visitKeys is visit over several keys.
func (h handle) visitKeys(keys []string, fn func(t *Tx) error) error {
	return h.doKeys(reading, keys, func(t *Tx) error { return h.calling(t, fn) })
}

// calling runs fn so that what must not be done within it is noticed.
func (h handle) calling(t *Tx, fn func(t *Tx) error) error {
	t.visit++
	defer func() { t.visit-- }()
	if h.tx != nil {
		return fn(t) // within a closure, which is noticed, or between Begin and End
	}
	return t.store.guard.call(fn, t)
}

func (s *Store) beginKeys(a access, keys []string) (*firstTx, error) {
	if err := s.guard.check(); err != nil {
		return nil, err
	}
	o := s.observation()
	s.settle(a)
	base, err := s.base.Begin(bool(a), keys...)
	return s.begun(o, a, base, err)
}

// beginReaping is beginKeys for a transaction that deletes what has expired.
func (s *Store) beginReaping(keys []string, observe func(*Store) *observation) (*firstTx, error) {
	if err := s.guard.check(); err != nil {
		return nil, err
	}
	var o *observation
	if observe != nil {
		o = observe(s)
	}
	base, err := s.base.Begin(true, keys...)
	return s.begun(o, writing, base, err)
}

func (s *Store) beginStripe(stripe int) (*firstTx, error) {
	if err := s.guard.check(); err != nil {
		return nil, err
	}
	o := s.observation()
	base, err := s.base.BeginStripe(false, stripe)
	return s.begun(o, reading, base, err)
}

// begun makes a call's transaction of the log's, which has its locks unless err is set.
func (s *Store) begun(o *observation, a access, base *bitcask.Tx, err error) (*firstTx, error) {
	if err != nil {
		base.Recycle()
		return nil, err
	}
	first := s.pooledTx(base, bool(a))
	first.unit.observation = o
	return first, nil
}

// doStripe is do over the keys of one stripe.
func (h handle) doStripe(stripe int, fn func(t *Tx) error) error {
	if h.tx != nil {
		if err := h.within(reading); err != nil {
			return err
		}
		return fn(h.tx)
	}
	first, err := h.store.beginStripe(stripe)
	if err != nil {
		return err
	}
	defer first.recycle()
	return first.Tx.end(fn(&first.Tx))
}

// owned leaves out what has been gathered if there is an error.
func owned[E any](list []E, err error) ([]E, error) {
	if err != nil {
		return nil, err
	}
	return list, nil
}

// found turns "not there" into ErrNotFound, unless the call itself has an error.
func found(ok bool, err error) error {
	if err == nil && !ok {
		return ErrNotFound
	}
	return err
}

// collect returns a visitor that appends copies of what it sees to a slice.
func collect(names *[]string) func([]byte) bool {
	return func(name []byte) bool {
		*names = append(*names, string(name))
		return true
	}
}

// collectScored is collect for members with scores.
func collectScored(members *[]Scored) func([]byte, float64) bool {
	return func(member []byte, score float64) bool {
		*members = append(*members, Scored{Member: string(member), Score: score})
		return true
	}
}

// collectFields is collect for fields of a hash.
func collectFields(fields *[]Field) func(name, value []byte) bool {
	return func(name, value []byte) bool {
		*fields = append(*fields, Field{Name: string(name), Value: append([]byte{}, value...)})
		return true
	}
}

// collectAt returns a function that copies values to their places; nil stays nil.
func collectAt(values [][]byte) func(i int, value []byte) {
	return func(i int, value []byte) {
		if value != nil {
			values[i] = append([]byte{}, value...)
		}
	}
}
