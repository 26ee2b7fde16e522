package db

import (
	"slices"

	"github.com/stavedb/stave/internal/serverside/calls"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// effects is what a transaction has done, for everything that follows it: watches, waiters, listeners to events and the
// ordered keys. There is no second record of that. It is taken at the one seam that every write of every call passes,
// structures.Txn, while any of them exists; while watchers.active is 0, a write costs one load of that number.
//
// A savepoint rolls effects back with the writes; the end of the transaction passes them on, in their order, while its
// keys are locked. What replicas are told of is captured below this, in txn (capture.go): what nobody watches (Unwatched,
// groups of streams, expiry) passes that as well.
type effects struct {
	touched  []nsKey // keys that were written
	notified int     // how many of touched the watches know of

	fills       []nsKey     // keys that were given something to wait for, in that order
	fillsServed int         // how many of fills have been offered to waiters
	insideServe bool        // and one more is just being offered
	finished    []*Waiter   // served, to be notified after the end of the transaction
	deferred    []deferral  // to be served after it
	serving     *deferral   // what this transaction is for, and
	queue       *[]deferral // what comes after it

	events  []Event        // for listeners, which get them after the commit
	changes []calls.Change // likewise, for those of OnChanges
	hooks   []hook         // likewise, of Tx.OnCommit
	dropped []nsKey        // a key that the current call has dropped: its replacement is not new
}

// trackingTxn is the transaction as structures sees it while its effects are wanted: it records them. Expiry is not
// recorded as a write; it shows in that the key is gone.
type trackingTxn struct{ *txn }

// recording returns the effects so far.
func (u *txState) recording() *effects {
	if u.effects == nil {
		u.effects = new(effects)
	}
	return u.effects
}

// touch notes a key that has changed, for whoever wants to know.
func (t *txn) touch(key string) {
	t.changed(key)
	if t.store.watchers.keys.Load() == 0 && t.store.ordered == nil {
		return
	}
	c := t.recording()
	if n := len(c.touched); n > c.notified && c.touched[n-1].ns == t.ns && c.touched[n-1].key == key {
		return
	}
	c.touched = append(c.touched, nsKey{t.ns, key})
}

// touchReady is touch for a write that gives the key, which holds typ, something to wait for.
func (t *txn) touchReady(key string, typ Type, err error) error {
	if err != nil {
		return err
	}
	t.touch(key)
	if t.store.watchers.keys.Load() != 0 && t.store.watchers.wanted(nsKey{t.ns, key}, typ) {
		t.offer(key)
	}
	return nil
}

// offer lets a key be offered to its waiters.
func (t *txn) offer(key string) {
	c, p := t.recording(), nsKey{t.ns, key}
	next := c.fillsServed
	if c.insideServe {
		next++
	}
	if !slices.Contains(c.fills[next:], p) {
		c.fills = append(c.fills, p)
	}
}

// offerMissing does that for waiters that want to know that a key holds no stream any more, or that a group of it is
// gone.
func (t *txn) offerMissing(key string) {
	if t.store.watchers.keys.Load() != 0 && t.store.watchers.missed(nsKey{t.ns, key}) {
		t.offer(key)
	}
}

// touchMade is touchReady for a write that may have made the key. An older key has been offered to all waiters.
func (t *txn) touchMade(key string, typ Type, isNew bool, err error) error {
	if !isNew {
		return t.touchAfter(key, err)
	}
	return t.touchReady(key, typ, err)
}

// touchMoved is touchReady for a key that has been moved here.
func (t *txn) touchMoved(key string, err error) error {
	if err != nil || t.store.watchers.keys.Load() == 0 {
		return t.touchAfter(key, err)
	}
	slot, _, err := t.Find(key)
	return t.touchReady(key, slot.Type, err)
}

// touchIf notes a key if a write went well and changed something.
func (t *txn) touchIf(key string, did bool, err error) (bool, error) {
	if did && err == nil {
		t.touch(key)
	}
	return did, err
}

func (t *txn) touchAfter(key string, err error) error {
	if err == nil {
		t.touch(key)
	}
	return err
}

// note keeps an event until the transaction is committed, if there is a listener for it.
func (t *txn) note(e EventKind, key string) {
	if t.store.listeners.want(e.Class()) {
		c := t.recording()
		c.events = append(c.events, Event{Namespace: t.ns, Key: key, Kind: e})
	}
}

// Notify ends a call of package structures, or a part of one that has its own event. As in Redis what has an event is a
// change for who watches the key, even if it wrote nothing, as LTRIM that removes no element; but groups of a stream
// are no part of what is watched, for readers change them all the time, and neither is its last id.
func (o trackingTxn) Notify(e EventKind, key string) {
	if e < structures.EventXSetID || e > structures.EventXGroupDelConsumer {
		o.touch(key)
	}
	o.note(e, key)
	if o.effects != nil && e != structures.EventNew {
		o.effects.dropped = o.effects.dropped[:0]
	}
}

func (o trackingTxn) Unwatched() structures.StreamTxn { return o.txn }

// isNew reports whether the coming put makes a key whose creation has a listener.
func (o trackingTxn) isNew(key string) (bool, error) {
	if !o.store.listeners.want(structures.ClassNew) {
		return false, nil
	}
	slot, _, err := o.Find(key)
	if err != nil || slot.Type != keydir.None {
		return false, err
	}
	c := o.effects
	return c == nil || len(c.dropped) == 0 || c.dropped[0] != nsKey{o.ns, key}, nil
}

func (o trackingTxn) PutString(key string, value []byte) error {
	return o.put(key, func() error { return o.txn.PutString(key, value) })
}

func (o trackingTxn) PutChunks(key string, value []byte, size int) (f keydir.Collection, err error) {
	err = o.put(key, func() (err error) {
		f, err = o.txn.PutChunks(key, value, size)
		return err
	})
	return f, err
}

func (o trackingTxn) put(key string, put func() error) error {
	isNew, err := o.isNew(key)
	if err != nil {
		return err
	}
	err = o.touchAfter(key, put())
	if err == nil {
		o.offerMissing(key)
	}
	if err != nil || !isNew {
		return err
	}
	o.note(structures.EventNew, key)
	return nil
}

func (o trackingTxn) Collection(key string, typ keydir.Type) (keydir.Collection, error) {
	isNew, err := o.isNew(key)
	if err != nil {
		return keydir.Collection{}, err
	}
	f, err := o.txn.Collection(key, typ)
	if err == nil && isNew {
		o.note(structures.EventNew, key)
	}
	return f, err
}

func (o trackingTxn) PutElem(key string, f keydir.Collection, elem string, value []byte) error {
	return o.touchAfter(key, o.txn.PutElem(key, f, elem, value))
}

func (o trackingTxn) PutScored(key string, f keydir.Collection, elem string, score uint64) error {
	isNew := f.Len() == 0
	return o.touchMade(key, TypeSortedSet, isNew, o.txn.PutScored(key, f, elem, score))
}

func (o trackingTxn) PutIndex(key string, f keydir.Collection, index int64, value []byte) error {
	isNew := f.Len() == 0
	return o.touchMade(key, TypeList, isNew, o.txn.PutIndex(key, f, index, value))
}

func (o trackingTxn) PutPlace(key string, f keydir.Collection, at keydir.ListPlace, value []byte) error {
	return o.touchAfter(key, o.txn.PutPlace(key, f, at, value))
}

func (o trackingTxn) PutEntry(key string, f keydir.Collection, id keydir.StreamID, value []byte) error {
	return o.touchReady(key, TypeStream, o.txn.PutEntry(key, f, id, value))
}

func (o trackingTxn) DeleteEntry(key string, f keydir.Collection, id keydir.StreamID) (bool, error) {
	did, err := o.txn.DeleteEntry(key, f, id)
	return o.touchIf(key, did, err)
}

func (o trackingTxn) PutStreamMeta(key string, f keydir.Collection, m keydir.StreamMeta) error {
	return o.touchAfter(key, o.txn.PutStreamMeta(key, f, m))
}

// DeleteGroups lets who waits for a group that is gone know that.
func (o trackingTxn) DeleteGroups(key string, all keydir.Collection, elem string) (int, error) {
	n, err := o.txn.DeleteGroups(key, all, elem)
	if err == nil && keydir.IsGroupsRange(elem) {
		o.offerMissing(key)
	}
	return n, err
}

func (o trackingTxn) DeleteElem(key string, f keydir.Collection, elem string) (bool, error) {
	did, err := o.txn.DeleteElem(key, f, elem)
	return o.touchIf(key, did, err)
}

func (o trackingTxn) DeleteRange(key string, f keydir.Collection, from, to keydir.ListPlace) (int, error) {
	n, err := o.txn.DeleteRange(key, f, from, to)
	_, err = o.touchIf(key, n > 0, err)
	return n, err
}

func (o trackingTxn) Drop(key string) (bool, error) {
	did, err := o.txn.Drop(key)
	if did && err == nil && o.store.listeners.want(structures.ClassNew) {
		o.recording().dropped = append(o.recording().dropped[:0], nsKey{o.ns, key})
	}
	return o.touchIf(key, did, err)
}

func (o trackingTxn) SetDeadline(key string, ms int64) error {
	return o.touchAfter(key, o.txn.SetDeadline(key, ms))
}

func (o trackingTxn) SetFieldDeadline(key, field string, ms int64) error {
	return o.touchAfter(key, o.txn.SetFieldDeadline(key, field, ms))
}

func (o trackingTxn) ClearFieldDeadline(key, field string) (bool, error) {
	did, err := o.txn.ClearFieldDeadline(key, field)
	return o.touchIf(key, did, err)
}

func (o trackingTxn) ClearDeadline(key string) (bool, error) {
	did, err := o.txn.ClearDeadline(key)
	return o.touchIf(key, did, err)
}
