package bitcask

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// The plain key-value store: string keys of namespace 0. The same store can
// be opened with package db, which sees these keys as strings.

// Get returns the value of key, or ErrNotFound. The result belongs to the
// caller. One index probe, one read of the record.
func (s *Store) Get(key string) ([]byte, error) { return s.GetInto(nil, key) }

// GetInto appends the value of key to dst, or returns dst and ErrNotFound. It allocates only what dst lacks.
func (s *Store) GetInto(dst []byte, key string) ([]byte, error) {
	if len(key) > MaxKey {
		return dst, fmt.Errorf("bitcask: key of %d bytes: %w", len(key), ErrTooLarge)
	}
	h := s.man.Seed.Hash(key)
	if lockFree {
		switch out, lookup := s.tryGet(dst, 0, h, key, true); lookup {
		case keydir.LookupHit:
			return out, nil
		case keydir.LookupMiss:
			return dst, ErrNotFound
		}
	}
	lock, err := s.lockKey(h)
	if err != nil {
		return dst, err
	}
	defer lock.RUnlock()
	if s.closed.Load() {
		return dst, ErrClosed
	}
	return s.getString(dst, 0, h, key)
}

// getString is GetInto under the lock of the key.
func (s *Store) getString(dst []byte, ns int, h uint64, key string) ([]byte, error) {
	sp := s.spaces.Of(ns)
	if sp == nil {
		return dst, ErrNotFound
	}
	q := segment.Query{Namespace: sp.ID, Kind: KindString, Type: keydir.String, Key: key}
	for i := 0; ; i++ {
		slot, ok := sp.Dir.Find(h, i)
		if !ok {
			return dst, ErrNotFound
		}
		if slot.Type != keydir.String {
			continue
		}
		sg, err := s.segmentOf(slot.Loc)
		if err != nil {
			return dst, err
		}
		out, _, match, err := sg.Get(dst, slot.Loc, &q, false)
		if err != nil || match {
			return out, err
		}
	}
}

// Has reports whether key exists.
func (s *Store) Has(key string) (bool, error) {
	if lookup := s.TryHas(0, key); lookup != keydir.LookupRetry {
		return lookup == keydir.LookupHit, nil
	}
	t, err := s.Begin(false, key)
	defer t.Recycle()
	if err != nil {
		return false, err
	}
	slot, _, err := t.Find(0, key)
	return slot.Type != keydir.None, err
}

// Put sets key to value. Both may be used again after it returns.
func (s *Store) Put(key string, value []byte) error {
	t, err := s.Begin(true, key)
	defer t.Recycle()
	if err != nil {
		return err
	}
	t.Borrow()
	if err := t.PutString(0, key, value); err != nil {
		return err
	}
	return t.finish()
}

// Delete removes key. It reports whether it was there.
func (s *Store) Delete(key string) (bool, error) {
	t, err := s.Begin(true, key)
	defer t.Recycle()
	if err != nil {
		return false, err
	}
	existed, err := t.Drop(0, key)
	if err != nil {
		return false, err
	}
	return existed, t.finish()
}

// finish commits, unlocks, and waits as the sync mode wants.
func (t *Tx) finish() error {
	ticket, err := t.Commit()
	t.End()
	if err != nil {
		return err
	}
	return t.s.WaitDurable(ticket)
}

// Batch collects puts and deletes to be committed as one: all of them are
// there after a crash, or none. A Batch is for one goroutine.
type Batch struct {
	s    *Store
	keys []string
	ops  []batchOp
	size int // bytes of the records, roughly
}

type batchOp struct {
	key    string
	value  []byte
	delete bool
}

// NewBatch returns an empty batch.
func (s *Store) NewBatch() *Batch { return &Batch{s: s} }

// Put adds a put. The value is kept until Commit and must not change.
func (b *Batch) Put(key string, value []byte) {
	b.keys = append(b.keys, key)
	b.ops = append(b.ops, batchOp{key: key, value: value})
	b.size += format.RecordHeaderMax + format.NameLen(KindString, keydir.String, len(key), 0)
	if len(value) < bigValue { // a longer one stays where it is
		b.size += len(value)
	}
}

// Delete adds a delete.
func (b *Batch) Delete(key string) {
	b.keys = append(b.keys, key)
	b.ops = append(b.ops, batchOp{key: key, delete: true})
}

// Len is the number of operations in the batch.
func (b *Batch) Len() int { return len(b.ops) }

// Commit applies the batch in order and empties it. After an error nothing has happened.
func (b *Batch) Commit() error {
	t, err := b.s.Begin(true, b.keys...)
	defer t.Recycle()
	if err != nil {
		return err
	}
	t.Borrow()
	t.buf = slices.Grow(t.buf, min(b.size, MaxCommit)) // else it would be copied as it grows
	for i, op := range b.ops {
		if i%PrefetchDepth == 0 {
			t.Prefetch(0, b.keys[i:])
		}
		if op.delete {
			_, err = t.Drop(0, op.key)
		} else {
			err = t.PutString(0, op.key, op.value)
		}
		if err != nil {
			return err
		}
	}
	b.keys, b.ops, b.size = b.keys[:0], b.ops[:0], 0
	return t.finish()
}

// Item is a key and its value.
type Item struct {
	Key   string
	Value []byte
}

// All ranges over every string key of namespace 0, in windows that are in the order of the log. It reads in pages and holds
// no lock between items: keys that are there throughout are seen exactly once, keys that come or go during the range may or
// may not be, and a value is that of the moment in which its page was read. The first error ends the range and comes with a
// zero Item.
func (s *Store) All() iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var w Walk
		var page []Item
		add := func(key, value []byte) { page = append(page, Item{string(key), slices.Clone(value)}) }
		for more := true; more; page = page[:0] {
			var err error
			if more, err = s.walkOn(&w, add); err != nil {
				yield(Item{}, err)
				return
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// walkOn is a step of a walk through namespace 0, with the strings that it finds. It returns whether there is another.
func (s *Store) walkOn(w *Walk, fn func(key, value []byte)) (more bool, err error) {
	stripe, gather := w.Stripe()
	if stripe == keydir.Stripes {
		return false, nil
	}
	others, err := s.walkIn(w, stripe, gather, fn)
	for i := 0; i < len(others) && err == nil; i++ {
		err = s.stringsOfHash(others[i], fn)
	}
	return true, err
}

// walkIn is Gather or Page of a walk through namespace 0.
func (s *Store) walkIn(w *Walk, stripe int, gather bool, fn func(key, value []byte)) (others []uint64, err error) {
	t, err := s.BeginStripe(false, stripe)
	defer t.Recycle()
	if err != nil {
		return nil, err
	}
	if gather {
		return nil, t.Gather(w, 0, func([]byte, keydir.Type) bool { return true })
	}
	return t.Page(w, 0, fn)
}

// stringsOfHash calls fn for the strings of namespace 0 whose names have a hash.
func (s *Store) stringsOfHash(h uint64, fn func(key, value []byte)) error {
	t, err := s.BeginStripe(false, keydir.StripeOf(h))
	defer t.Recycle()
	if err != nil {
		return err
	}
	var failed error
	err = t.EachKey(0, keydir.StripeOf(h), h, func(now uint64, key []byte, typ keydir.Type) bool {
		if now == h && typ == keydir.String {
			var value []byte
			if value, failed = s.getString(nil, 0, h, string(key)); failed == nil {
				fn(key, value)
			}
		}
		return now == h && failed == nil
	})
	return errors.Join(err, failed)
}
