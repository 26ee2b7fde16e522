package db

import (
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
	"github.com/stavedb/stave/ttl"
)

// txn is the transaction as structures sees it: the log's, with expired keys
// hidden from readers and dropped for writers.
type txn Tx

// Every write goes through it, so that watchers miss none.
func (t *Tx) txn() structures.Txn {
	if t.store.watchers.active.Load() != 0 {
		return trackingTxn{(*txn)(t)}
	}
	return (*txn)(t)
}

// Notify is for listeners: there are none.
func (t *txn) Notify(EventKind, string) {}

func (t *txn) space() uint32 { return t.store.log.Space(t.ns) }

// hideExpired reports whether key has expired. A writer drops the key at once, so that its next
// step starts from nothing.
func (t *txn) hideExpired(key string) (bool, error) {
	space := t.space()
	ms, ok := t.store.deadlines.Get(space, key)
	if !ok || !t.due(ms) {
		gone, err := (*Tx)(t).fieldsGone(t.ns, space, key)
		if gone && t.write && err == nil {
			err = t.expireFields(key)
		}
		return gone, err
	}
	t.foundDue(ms, t.write)
	if !t.write {
		return true, nil
	}
	_, err := t.expire(key)
	return true, err
}

// expire drops a key whose time has come, and says whether it was there.
func (t *txn) expire(key string) (bool, error) {
	t.leaveOrder(key)
	existed, err := t.drop(key)
	if existed && err == nil {
		t.expired++
		t.note(structures.EventExpired, key)
	}
	return existed, err
}

func (t *txn) Find(key string) (keydir.Slot, keydir.Collection, error) {
	if gone, err := t.hideExpired(key); gone || err != nil {
		return keydir.Slot{}, keydir.Collection{}, err
	}
	return t.log.Find(t.ns, key)
}

func (t *txn) Value(dst []byte, key, elem string, typ keydir.Type, loc keydir.Loc) ([]byte, error) {
	return t.log.Value(dst, t.ns, key, elem, typ, loc)
}

func (t *txn) ValueLen(key, elem string, typ keydir.Type, loc keydir.Loc) (int, error) {
	return t.log.ValueLen(t.ns, key, elem, typ, loc)
}

func (t *txn) PutString(key string, value []byte) error {
	if _, err := t.hideExpired(key); err != nil {
		return err
	}
	if err := t.log.PutString(t.ns, key, value); err != nil {
		return err
	}
	t.noteFields(key, 0) // of a hash that it has replaced
	return nil
}

// PutChunks begins with a tombstone, which prevents old content of the key from reappearing among
// the chunks, and removes the deadline, which is put again after it.
func (t *txn) PutChunks(key string, value []byte) (keydir.Collection, error) {
	ms, timed := t.Deadline(key)
	existed, err := t.Drop(key)
	if err != nil {
		return keydir.Collection{}, err
	}
	f, err := t.log.PutChunks(t.ns, key, value, t.ChunkSize())
	if err == nil && existed && timed {
		err = t.SetDeadline(key, ms)
	}
	return f, err
}

func (t *txn) ChunkSize() int { return t.store.opts.seam.ChunkSize }

func (t *txn) Collection(key string, typ keydir.Type) (keydir.Collection, error) {
	if _, err := t.hideExpired(key); err != nil {
		return keydir.Collection{}, err
	}
	return t.log.Collection(t.ns, key, typ)
}

func (t *txn) PutElem(f keydir.Collection, elem string, value []byte) error {
	return t.log.PutElem(t.ns, t.log.KeyOf(f), f, elem, value)
}

func (t *txn) PutScored(f keydir.Collection, elem string, score uint64) error {
	return t.log.PutScored(t.ns, t.log.KeyOf(f), f, elem, score)
}

func (t *txn) PutIndex(f keydir.Collection, index int64, value []byte) error {
	return t.log.PutIndex(t.ns, t.log.KeyOf(f), f, index, value)
}

func (t *txn) DeleteElem(f keydir.Collection, elem string) (bool, error) {
	key := t.log.KeyOf(f)
	existed, err := t.log.DeleteElem(t.ns, key, f, elem)
	if err != nil || !existed || f.Type() != keydir.Hash {
		return existed, err
	}
	return true, t.fieldDeadlineGone(key)
}

func (t *txn) DeleteIndex(f keydir.Collection, index int64) (bool, error) {
	return t.log.DeleteIndex(t.ns, t.log.KeyOf(f), f, index)
}

func (t *txn) Drop(key string) (bool, error) {
	// A key whose time has come was not there any more.
	if gone, err := t.hideExpired(key); gone || err != nil {
		return false, err
	}
	return t.drop(key)
}

func (t *txn) drop(key string) (bool, error) {
	existed, err := t.log.Drop(t.ns, key)
	if err == nil {
		t.noteDeadline(key, 0)
		t.noteFields(key, 0)
	}
	return existed, err
}

func (t *txn) Deadline(key string) (int64, bool) { return t.store.deadlines.Get(t.space(), key) }

func (t *txn) SetDeadline(key string, ms int64) error {
	if err := t.log.SetDeadline(t.ns, key, ms); err != nil {
		return err
	}
	t.noteDeadline(key, ms)
	return nil
}

func (t *txn) ClearDeadline(key string) (bool, error) {
	if _, ok := t.Deadline(key); !ok {
		return false, nil
	}
	had, err := t.log.ClearDeadline(t.ns, key)
	if err == nil {
		t.noteDeadline(key, 0)
	}
	return had, err
}

// noteDeadline changes the deadline of a key, in a way that can be rolled back. 0 clears.
func (t *txn) noteDeadline(key string, ms int64) { t.noteIn(t.store.deadlines, key, ms) }

func (t *txn) noteIn(index *ttl.Deadlines, key string, ms int64) {
	space := t.space()
	old, had := index.Get(space, key)
	if !had && ms == 0 {
		return
	}
	t.deadlines = append(t.deadlines, deadlineChange{index, space, key, old, had})
	if ms == 0 {
		index.Clear(space, key)
	} else {
		index.Set(space, key, ms)
	}
}
