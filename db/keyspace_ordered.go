package db

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/btree"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/keydir"
)

// orderedKeys are the names of all keys in the order of their bytes, with their types, for Options.OrderedKeys. They are brought in step
// with the keydir at the end of each commit, while its keys are locked: whatever a transaction did and rolled back,
// only what each key that it wrote holds then counts. Expired keys are in it until they are deleted, and leave it
// before they lose their deadlines.
type orderedKeys struct {
	changes atomic.Uint64 // how often anything below has changed
	mu      sync.RWMutex  // guards the rest; a writer of a key holds its stripe
	spaces  map[uint32]*btree.BTreeG[KeyInfo]
	err     error // why names are missing: a damaged record could not be read at Open
}

// orderedDegree makes a node of the tree about 1 KiB long.
const orderedDegree = 32

// newOrderedKeys reads the names of all keys.
func newOrderedKeys(ctx context.Context, base *bitcask.Store) (*orderedKeys, error) {
	o := &orderedKeys{spaces: map[uint32]*btree.BTreeG[KeyInfo]{}}
	t, err := base.BeginAll(false)
	if err != nil {
		return nil, err
	}
	defer t.Recycle()
	for _, ns := range base.Namespaces() {
		tree := o.tree(base.Space(ns))
		err := t.EachName(ns, func(key []byte, typ keydir.Type) bool {
			tree.ReplaceOrInsert(KeyInfo{Key: string(key), Type: typ.Public()})
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
func (o *orderedKeys) tree(space uint32) *btree.BTreeG[KeyInfo] {
	if o.spaces[space] == nil {
		o.spaces[space] = btree.NewG(orderedDegree, func(a, b KeyInfo) bool { return a.Key < b.Key })
	}
	return o.spaces[space]
}

// set notes what a key holds. Most writes change nothing about that.
func (o *orderedKeys) set(space uint32, key string, typ Type) {
	if o.typeOf(space, key) == typ {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes.Add(1)
	if typ != TypeNone {
		o.tree(space).ReplaceOrInsert(KeyInfo{Key: strings.Clone(key), Type: typ}) // it may be a part of something long
	} else {
		o.spaces[space].Delete(KeyInfo{Key: key})
	}
}

// drop forgets a space.
func (o *orderedKeys) drop(space uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.spaces, space)
	o.changes.Add(1)
}

// page appends up to n keys of a range to keys, in its order. While changes is what it returns, the keys are those.
func (o *orderedKeys) page(space uint32, r KeyRange, n int, keys []KeyInfo) (_ []KeyInfo, changes uint64, _ error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	changes = o.changes.Load()
	tree := o.spaces[space]
	if tree == nil || o.err != nil {
		return keys, changes, o.err
	}
	take := func(k KeyInfo) bool {
		if !r.contains(k.Key) {
			return r.Reverse && k.Key >= r.Max && r.Max != "" // the end itself is skipped
		}
		keys = append(keys, k)
		n--
		return n > 0
	}
	switch {
	case !r.Reverse:
		tree.AscendGreaterOrEqual(KeyInfo{Key: r.Min}, take)
	case r.Max == "":
		tree.Descend(take)
	default:
		tree.DescendLessOrEqual(KeyInfo{Key: r.Max}, take)
	}
	return keys, changes, nil
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
		o.set(t.store.base.Space(p.ns), p.key, slot.Type.Public())
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
		o.set(t.space(), key, TypeNone)
	}
}

// typeOf is what a key holds that is listed, TypeNone if it is not.
func (o *orderedKeys) typeOf(space uint32, key string) Type {
	o.mu.RLock()
	defer o.mu.RUnlock()
	tree := o.spaces[space]
	if tree == nil {
		return TypeNone
	}
	k, _ := tree.Get(KeyInfo{Key: key})
	return k.Type
}
