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

// fewKeys is of how many keys a random one is chosen by passing over others.
const fewKeys = 64

// RandomKey returns a key chosen at random, or ErrNotFound if there is none. It is almost uniform: of up to 64 keys exactly,
// beyond that what the gaps between hashes allow. O(1); within a transaction, and of few keys, up to 64 of them are looked at.
func (k Keyspace) RandomKey() (string, error) {
	if k.tx == nil {
		return k.store.RandomKey()
	}
	if err := k.tx.check(); err != nil {
		return "", err
	}
	n := k.tx.Len()
	if n == 0 {
		return "", ErrNotFound
	}
	start, skip := uint64(0), int(k.tx.rand()%uint64(min(n, fewKeys)))
	if n > fewKeys {
		start = k.tx.rand()
	}
	var found []string
	collect := func(_ uint64, key []byte, _ Type) bool {
		found = append(found, string(key))
		return len(found) <= skip
	}
	if _, err := k.scan(start, collect); err != nil {
		return "", err
	}
	if len(found) <= skip && start > 0 { // the end of the hashes was met
		if _, err := k.scan(0, collect); err != nil {
			return "", err
		}
	}
	if len(found) == 0 {
		return "", ErrNotFound // all keys have expired and wait to be reaped
	}
	return found[min(skip, len(found)-1)], nil
}
