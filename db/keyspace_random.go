package db

import "math/rand/v2"

// fewKeys is of how many keys a random one is chosen by reading all.
const fewKeys = 64

// RandomKey returns a key chosen at random, each with the same chance, or ErrNotFound if there is none. O(1); of up to 64
// keys all are read. Within a transaction it is one over all keys.
func (k Keyspace) RandomKey() (string, error) {
	if k.tx == nil {
		if err := k.store.guard.check(); err != nil {
			return "", err
		}
	} else if err := k.tx.check(); err != nil {
		return "", err
	}
	switch {
	case k.tx == nil && k.store.base.Len(k.ns) > fewKeys, k.tx != nil && k.tx.Len() > fewKeys:
		return k.randomOfMany()
	case k.tx != nil:
		return k.randomOfFew()
	}
	var key string
	err := k.store.View(func(tx *Tx) error {
		tx, err := tx.Use(k.ns)
		if err == nil {
			key, err = tx.Keyspace().randomOfFew()
		}
		return err
	})
	return key, err
}

// randomOfFew reads all keys, in a transaction.
func (k Keyspace) randomOfFew() (string, error) {
	var found []string
	if _, err := k.scan(0, func(_ uint64, key []byte, _ Type) bool {
		found = append(found, string(key))
		return true
	}); err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", ErrNotFound // all keys have expired and wait to be reaped
	}
	return found[k.tx.rand()%uint64(len(found))], nil
}

// randomOfMany draws keys until one has not expired.
func (k Keyspace) randomOfMany() (string, error) {
	const tries = 100
	for range tries {
		var key string
		var ok bool
		var err error
		if k.tx != nil {
			key, ok, err = k.tx.base.RandomKey(k.ns, rand.Uint64)
		} else {
			key, ok, err = k.store.base.RandomKey(k.ns, rand.Uint64)
		}
		if err != nil {
			return "", err
		}
		if !ok {
			break
		}
		if exists, err := k.at(key).Exists(); err != nil || exists {
			return key, err
		}
	}
	return "", ErrNotFound
}
