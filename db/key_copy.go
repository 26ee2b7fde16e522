package db

import (
	"errors"
	"strconv"
)

// ErrSameKey is returned for a copy of a key over itself.
var ErrSameKey = errors.New("db: source and destination are the same key")

// CopyTo copies the content of the key, with its deadline, to another key, of a namespace, replacing that. It returns
// ErrNotFound if the key does not exist, and with IfAbsent ErrExists if the other one does. It fails with ErrSameKey if
// the two are one, and with ErrNamespace if there is no such namespace. O(n): every record is written again under the
// other name.
func (k Key) CopyTo(namespace int, to string, options ...WriteOption) error {
	condition, err := conditionOf(options)
	if err != nil {
		return err
	}
	return k.transferOther("COPY", namespace, to, options, func(t, other *Tx) (copied, ok bool, err error) {
		return k.on(t).Copy(other.txn(), to, condition)
	})
}

// MoveTo moves the key to another namespace, with its deadline. It returns ErrNotFound if the key does not exist, and
// ErrExists if it does in the other namespace. It fails with ErrSameKey if the namespace is the key's own, and with
// ErrNamespace if there is no such namespace. O(n): every record is written again.
func (k Key) MoveTo(namespace int) error {
	return k.transferOther("MOVE", namespace, k.key, []WriteOption{IfAbsent}, func(t, other *Tx) (moved, ok bool, err error) {
		return k.on(t).Move(other.txn(), k.key)
	})
}

// transferOther is transfer to a key that is another one.
func (k Key) transferOther(command string, namespace int, to string, options []WriteOption, fn func(t, other *Tx) (done, ok bool, err error)) error {
	return k.transfer(command, namespace, to, options, func(t, other *Tx) (bool, bool, error) {
		if namespace == k.ns && to == k.key {
			return false, false, ErrSameKey
		}
		return fn(t, other)
	})
}

// transfer runs fn, which does what a command does, in a transaction over the key and another one. ok says whether there
// is the key.
func (k Key) transfer(command string, namespace int, to string, options []WriteOption, fn func(t, other *Tx) (done, ok bool, err error)) error {
	ok := false
	done, err := callKeys(k.handle, writing, []string{k.key, to}, func(t *Tx) (done bool, err error) {
		other, err := t.Use(namespace)
		if err != nil {
			return false, err
		}
		m, err := t.describing(nsKey{t.ns, k.key}, nsKey{namespace, to})
		if err != nil {
			return false, err
		}
		_, timed := t.store.fields.Get((*txn)(t).space(), k.key)
		done, ok, err = fn(t, other)
		if err == nil && t.captured != nil && !timed { // of a timed hash the fields that have expired are left out
			t.captured.Describe(m, t.ns, k.transferred(command, namespace, to)...)
		}
		return done, err
	})
	if err = found(ok, err); err != nil {
		return err
	}
	return held(done, options, nil)
}

// transferred is a command that transfers the key.
func (k Key) transferred(command string, namespace int, to string) []string {
	switch command {
	case "COPY":
		return []string{command, k.key, to, "DB", strconv.Itoa(namespace), "REPLACE"}
	case "MOVE":
		return []string{command, k.key, strconv.Itoa(namespace)}
	}
	return []string{command, k.key, to}
}
