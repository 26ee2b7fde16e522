package db

import "github.com/stavedb/stave/keydir"

// changes is what a transaction does that watchers may want to know.
type changes struct {
	touched  []place
	offered  int       // how many of touched have been offered to waiters
	served   []*Waiter // to be told when the transaction has ended
	deferred []deferral
	locked   []string // what a transaction that serves a deferral has locked for it
}

// observed is the transaction as structures sees it while there are watchers: it notes which keys are written. Expiry is not
// noted; it shows in that the key is gone.
type observed struct{ *txn }

// touch notes a key that has changed.
func (t *txn) touch(key string) {
	if t.changes == nil {
		t.changes = new(changes)
	}
	c := t.changes
	if n := len(c.touched); n > c.offered && c.touched[n-1].ns == t.ns && c.touched[n-1].key == key {
		return
	}
	c.touched = append(c.touched, place{t.ns, key})
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

func (o observed) PutString(key string, value []byte) error {
	return o.touchAfter(key, o.txn.PutString(key, value))
}

func (o observed) PutChunks(key string, value []byte) (keydir.Family, error) {
	f, err := o.txn.PutChunks(key, value)
	return f, o.touchAfter(key, err)
}

func (o observed) PutElem(f keydir.Family, elem string, value []byte) error {
	return o.touchAfter(f.Key(), o.txn.PutElem(f, elem, value))
}

func (o observed) PutScored(f keydir.Family, elem string, score uint64) error {
	return o.touchAfter(f.Key(), o.txn.PutScored(f, elem, score))
}

func (o observed) PutIndex(f keydir.Family, index int64, value []byte) error {
	return o.touchAfter(f.Key(), o.txn.PutIndex(f, index, value))
}

func (o observed) DeleteElem(f keydir.Family, elem string) (bool, error) {
	key := f.Key() // the last element takes the family with it
	did, err := o.txn.DeleteElem(f, elem)
	return o.touchIf(key, did, err)
}

func (o observed) DeleteIndex(f keydir.Family, index int64) (bool, error) {
	key := f.Key()
	did, err := o.txn.DeleteIndex(f, index)
	return o.touchIf(key, did, err)
}

func (o observed) Drop(key string) (bool, error) {
	did, err := o.txn.Drop(key)
	return o.touchIf(key, did, err)
}

func (o observed) Rename(from, to string) error {
	if err := o.txn.Rename(from, to); err != nil {
		return err
	}
	o.touch(from)
	o.touch(to)
	return nil
}

func (o observed) SetDeadline(key string, ms int64) error {
	return o.touchAfter(key, o.txn.SetDeadline(key, ms))
}

func (o observed) ClearDeadline(key string) (bool, error) {
	did, err := o.txn.ClearDeadline(key)
	return o.touchIf(key, did, err)
}
