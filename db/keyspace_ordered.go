package db

import (
	"context"
	"strings"
	"sync"

	"github.com/google/btree"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/keydir"
)

// orderedKeys are the names of all keys in the order of their bytes, for Options.OrderedKeys. They are brought in step
// with the keydir at the end of each commit, while its keys are locked: whatever a transaction did and rolled back,
// only whether each key that it wrote exists then counts. Expired keys are in it until they are deleted, and leave it
// before they lose their deadlines.
type orderedKeys struct {
	mu     sync.RWMutex // guards the rest; a writer of a key holds its stripe
	spaces map[uint32]*btree.BTreeG[string]
	err    error // why names are missing: a damaged record could not be read at Open
}

// orderedDegree makes a node of the tree about 1 KiB long.
const orderedDegree = 32

// newOrderedKeys reads the names of all keys.
func newOrderedKeys(ctx context.Context, base *bitcask.Store) (*orderedKeys, error) {
	o := &orderedKeys{spaces: map[uint32]*btree.BTreeG[string]{}}
	t, err := base.BeginAll(false)
	if err != nil {
		return nil, err
	}
	defer t.Recycle()
	for _, ns := range base.Namespaces() {
		tree := o.tree(base.Space(ns))
		err := t.EachName(ns, func(key []byte) bool {
			tree.ReplaceOrInsert(string(key))
			return ctx.Err() == nil
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil && o.err == nil {
			o.err = err
		}
	}
	return o, nil
}

// tree finds or makes the tree of a space. The mutex is held.
func (o *orderedKeys) tree(space uint32) *btree.BTreeG[string] {
	if o.spaces[space] == nil {
		o.spaces[space] = btree.NewG(orderedDegree, func(a, b string) bool { return a < b })
	}
	return o.spaces[space]
}

// set notes whether a key exists. Most writes change nothing about that.
func (o *orderedKeys) set(space uint32, key string, exists bool) {
	if o.has(space, key) == exists {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if exists {
		o.tree(space).ReplaceOrInsert(strings.Clone(key)) // it may be a part of something long
	} else {
		o.spaces[space].Delete(key)
	}
}

// drop forgets a space.
func (o *orderedKeys) drop(space uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.spaces, space)
}

// page appends up to n keys of a range to keys, in its order.
func (o *orderedKeys) page(space uint32, r KeyRange, n int, keys []string) ([]string, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	tree := o.spaces[space]
	if tree == nil || o.err != nil {
		return keys, o.err
	}
	take := func(key string) bool {
		if !r.contains(key) {
			return r.Reverse && key >= r.Max && r.Max != "" // the end itself is skipped
		}
		keys = append(keys, key)
		n--
		return n > 0
	}
	switch {
	case !r.Reverse:
		tree.AscendGreaterOrEqual(r.Min, take)
	case r.Max == "":
		tree.Descend(take)
	default:
		tree.DescendLessOrEqual(r.Max, take)
	}
	return keys, nil
}

// reindex brings the ordered keys in step with what a transaction has written. It is committed, and its keys are
// locked.
func (t *Tx) reindex() {
	o := t.store.ordered
	for _, p := range t.effects.touched {
		slot, _, err := t.base.Find(p.ns, p.key)
		if err != nil { // a damaged record, with the same hash
			o.fail(err)
			return
		}
		o.set(t.store.base.Space(p.ns), p.key, slot.Type != keydir.None)
	}
}

// fail notes why names are missing.
func (o *orderedKeys) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// leaveOrder removes an expired key from the ordered keys. That need not be rolled back with the transaction: nothing
// restores the key, and if it is made again it counts as written.
func (t *txn) leaveOrder(key string) {
	if o := t.store.ordered; o != nil {
		o.set(t.space(), key, false)
	}
}

// has says whether a key is listed.
func (o *orderedKeys) has(space uint32, key string) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	tree := o.spaces[space]
	return tree != nil && tree.Has(key)
}
