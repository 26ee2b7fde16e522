package db

import "errors"

// ErrSameKey is returned for a copy of a key over itself.
var ErrSameKey = errors.New("db: source and destination are the same key")

// CopyTo makes another key, of a namespace, hold what the key holds, with its deadline. It says false, and does nothing, if
// the other key exists and replace is not set, or if there is nothing to copy. It fails with ErrSameKey if the two are one,
// and with ErrNamespace if there is no such namespace. O(n): every record is written again under the other name.
func (k Key) CopyTo(namespace int, to string, replace bool) (bool, error) {
	return k.transfer(namespace, to, func(t, other *Tx) (bool, error) { return k.on(t).Copy(other.txn(), to, replace) })
}

// MoveTo moves the key to another namespace, with its deadline. It says false, and does nothing, if the key exists there, or
// if there is nothing to move. It fails with ErrSameKey if the namespace is the key's own, and with ErrNamespace if there is
// no such namespace. O(n): every record is written again.
func (k Key) MoveTo(namespace int) (bool, error) {
	return k.transfer(namespace, k.key, func(t, other *Tx) (bool, error) { return k.on(t).Move(other.txn(), k.key) })
}

// transfer runs fn in a transaction over the key and another one.
func (k Key) transfer(namespace int, to string, fn func(t, other *Tx) (bool, error)) (bool, error) {
	return callKeys(k.handle, writing, []string{k.key, to}, func(t *Tx) (bool, error) {
		if namespace == k.ns && to == k.key {
			return false, ErrSameKey
		}
		other, err := t.Use(namespace)
		if err != nil {
			return false, err
		}
		return fn(t, other)
	})
}
