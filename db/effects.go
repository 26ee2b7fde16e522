package db

import (
	"slices"

	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// changes is what a transaction does that watchers may want to know.
type changes struct {
	touched  []place   // keys that were written
	told     int       // how many of touched the watches have been told of
	ready    []place   // keys that were given something to wait for, in that order
	offered  int       // how many of ready have been offered to waiters
	offering bool      // and one more is just being
	served   []*Waiter // to be told when the transaction has ended
	deferred []deferral
	serving  *deferral   // what this transaction is for, and
	behind   *[]deferral // what comes after it

	events  []Event // for listeners, who hear of them when the transaction is committed
	dropped []place // a key that the current call has dropped: what it makes in its place is not new
}

// observed is the transaction as structures sees it while there are watchers: it notes which keys are written. Expiry is not
// noted; it shows in that the key is gone.
type observed struct{ *txn }

func (u *unit) noted() *changes {
	if u.changes == nil {
		u.changes = new(changes)
	}
	return u.changes
}

// touch notes a key that has changed, unless nobody but listeners to events wants to know.
func (t *txn) touch(key string) {
	if t.store.watchers.keys.Load() == 0 && t.store.ordered == nil {
		return
	}
	c := t.noted()
	if n := len(c.touched); n > c.told && c.touched[n-1].ns == t.ns && c.touched[n-1].key == key {
		return
	}
	c.touched = append(c.touched, place{t.ns, key})
}

// touchReady is touch for a write that gives the key, which holds typ, something to wait for.
func (t *txn) touchReady(key string, typ Type, err error) error {
	if err != nil {
		return err
	}
	t.touch(key)
	if t.store.watchers.keys.Load() == 0 {
		return nil
	}
	c, p := t.noted(), place{t.ns, key}
	next := c.offered
	if c.offering {
		next++
	}
	if t.store.watchers.wanted(p, typ) && !slices.Contains(c.ready[next:], p) {
		c.ready = append(c.ready, p)
	}
	return nil
}

// touchMade is touchReady for a write that may have made the key. One that was there had been offered to all who wait.
func (t *txn) touchMade(key string, typ Type, isNew bool, err error) error {
	if !isNew {
		return t.touchAfter(key, err)
	}
	return t.touchReady(key, typ, err)
}

// arrived is touchReady for a key that has been moved here.
func (t *txn) arrived(key string, err error) error {
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

// note keeps an event until the transaction is committed, if anybody wants to hear of it.
func (t *txn) note(e EventKind, key string) {
	if t.store.listeners.want(e.Class()) {
		c := t.noted()
		c.events = append(c.events, Event{Namespace: t.ns, Key: key, Kind: e})
	}
}

// Notify ends a call of package structures, or a part of one that an event tells of.
func (o observed) Notify(e EventKind, key string) {
	o.note(e, key)
	if o.changes != nil && e != structures.EventNew {
		o.changes.dropped = o.changes.dropped[:0]
	}
}

// isNew says whether what is about to be put makes a key that somebody wants to hear of.
func (o observed) isNew(key string) (bool, error) {
	if !o.store.listeners.want(structures.ClassNew) {
		return false, nil
	}
	slot, _, err := o.Find(key)
	if err != nil || slot.Type != keydir.None {
		return false, err
	}
	c := o.changes
	return c == nil || len(c.dropped) == 0 || c.dropped[0] != place{o.ns, key}, nil
}

func (o observed) PutString(key string, value []byte) error {
	return o.put(key, func() error { return o.txn.PutString(key, value) })
}

func (o observed) PutChunks(key string, value []byte) (f keydir.Collection, err error) {
	err = o.put(key, func() (err error) {
		f, err = o.txn.PutChunks(key, value)
		return err
	})
	return f, err
}

func (o observed) put(key string, put func() error) error {
	isNew, err := o.isNew(key)
	if err != nil {
		return err
	}
	if err := o.touchAfter(key, put()); err != nil || !isNew {
		return err
	}
	o.note(structures.EventNew, key)
	return nil
}

func (o observed) Collection(key string, typ keydir.Type) (keydir.Collection, error) {
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

func (o observed) PutElem(f keydir.Collection, elem string, value []byte) error {
	return o.touchAfter(f.Key(), o.txn.PutElem(f, elem, value))
}

func (o observed) PutScored(f keydir.Collection, elem string, score uint64) error {
	isNew := f.Len() == 0
	return o.touchMade(f.Key(), TypeSortedSet, isNew, o.txn.PutScored(f, elem, score))
}

func (o observed) PutIndex(f keydir.Collection, index int64, value []byte) error {
	isNew := f.Len() == 0
	return o.touchMade(f.Key(), TypeList, isNew, o.txn.PutIndex(f, index, value))
}

func (o observed) DeleteElem(f keydir.Collection, elem string) (bool, error) {
	key := f.Key() // the last element takes the collection with it
	did, err := o.txn.DeleteElem(f, elem)
	return o.touchIf(key, did, err)
}

func (o observed) DeleteIndex(f keydir.Collection, index int64) (bool, error) {
	key := f.Key()
	did, err := o.txn.DeleteIndex(f, index)
	return o.touchIf(key, did, err)
}

func (o observed) Drop(key string) (bool, error) {
	did, err := o.txn.Drop(key)
	if did && err == nil && o.store.listeners.want(structures.ClassNew) {
		o.noted().dropped = append(o.noted().dropped[:0], place{o.ns, key})
	}
	return o.touchIf(key, did, err)
}

func (o observed) Rename(from, to string) error {
	if err := o.arrived(to, o.txn.Rename(from, to)); err != nil {
		return err
	}
	o.touch(from)
	o.note(structures.EventNew, to)
	return nil
}

func (o observed) SetDeadline(key string, ms int64) error {
	return o.touchAfter(key, o.txn.SetDeadline(key, ms))
}

func (o observed) SetFieldDeadline(f keydir.Collection, field string, ms int64) error {
	return o.touchAfter(f.Key(), o.txn.SetFieldDeadline(f, field, ms))
}

func (o observed) ClearFieldDeadline(f keydir.Collection, field string) (bool, error) {
	did, err := o.txn.ClearFieldDeadline(f, field)
	return o.touchIf(f.Key(), did, err)
}

func (o observed) ClearDeadline(key string) (bool, error) {
	did, err := o.txn.ClearDeadline(key)
	return o.touchIf(key, did, err)
}
