package db

import (
	"cmp"
	"errors"
	"strconv"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/structures"
)

// Operations of a transaction on whole namespaces. Outside of one they are O(1), for a namespace is a name for a space
// of records; but a lock-free reader would see a name change before the commit, so a transaction goes key by key.

// Flush empties the namespace, as a part of the transaction, which must have locked everything. O(number of keys):
// Store.Flush is O(1).
func (t *Tx) Flush() error {
	if err := t.checkWrite(); err != nil {
		return err
	}
	return t.whole(t.flush)
}

func (t *Tx) flush() error {
	keys, err := t.Keyspace().Keys("*")
	if err != nil {
		return err
	}
	m := t.captured.mark()
	all := t.txn()
	for _, key := range keys {
		if _, err := all.Drop(key); err != nil {
			return err
		}
	}
	if t.captured != nil {
		t.captured.Describe(m, t.ns, "FLUSHDB")
	}
	(*txn)(t).changedWhole()
	(*txn)(t).note(structures.EventFlushed, "")
	return nil
}

// Swap exchanges what two namespaces hold, as a part of the transaction, which must have locked everything. O(n), n
// being the size of both, which is written again: Store.Swap is O(1).
func (t *Tx) Swap(a, b int) error {
	if err := t.checkWrite(); err != nil {
		return err
	}
	return t.whole(func() error { return t.swap(a, b) })
}

func (t *Tx) swap(a, b int) error {
	first, err := t.Use(a)
	if err != nil {
		return err
	}
	second, err := t.Use(b)
	if err != nil || a == b {
		return err
	}
	aside, err := t.unusedNamespace(a, b)
	if err != nil {
		return err
	}
	if t.captured != nil { // SWAPDB takes along what has expired, which stays here
		if err := cmp.Or((*txn)(first).dropExpired(), (*txn)(second).dropExpired()); err != nil {
			return err
		}
	}
	m := t.captured.mark()
	ofFirst, err := first.Keyspace().Keys("*")
	if err != nil {
		return err
	}
	ofSecond, err := second.Keyspace().Keys("*")
	if err != nil {
		return err
	}
	if err := first.moveAll(ofFirst, aside); err != nil {
		return err
	}
	if err := second.moveAll(ofSecond, first); err != nil {
		return err
	}
	if err := aside.moveAll(ofFirst, second); err != nil {
		return err
	}
	if t.captured != nil {
		t.captured.Describe(m, t.ns, "SWAPDB", strconv.Itoa(a), strconv.Itoa(b))
	}
	(*txn)(first).changedWhole()
	(*txn)(second).changedWhole()
	(*txn)(first).note(structures.EventSwapped, "")
	(*txn)(second).note(structures.EventSwapped, "")
	return nil
}

// unusedNamespace is a view on a namespace, perhaps beyond Options.Namespaces, that holds nothing.
func (t *Tx) unusedNamespace(but ...int) (*Tx, error) {
	for ns := bitcask.MaxNamespaces - 1; ns >= 0; ns-- {
		if ns != but[0] && ns != but[1] && t.base.Len(ns) == 0 {
			return &Tx{txState: t.txState, ns: ns}, nil
		}
	}
	return nil, errors.New("db: every namespace holds keys: none is free to swap others through")
}

// moveAll moves keys to another namespace, with their deadlines, for watches and waiters as well; listeners to events
// get the swap only.
func (t *Tx) moveAll(keys []string, to *Tx) error {
	from, target := (*txn)(t), (*txn)(to)
	for _, key := range keys {
		_, _, err := structures.Key{Txn: from, Key: key}.Move(target, key)
		from.touch(key)
		if err := target.touchMoved(key, err); err != nil {
			return err
		}
	}
	return nil
}
