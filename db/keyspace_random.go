package db

import "math/rand/v2"

// fewKeys is of how many keys a random one is chosen by passing over others.
const fewKeys = 64

// RandomKey returns a key chosen at random, or ErrNotFound if there is none. It is almost uniform: of up to 64 keys
// exactly, beyond that what the gaps between hashes allow. O(1); within a transaction, and of few keys, up to 64 of
// them are read.
func (k Keyspace) RandomKey() (string, error) {
	if k.tx == nil {
		return k.randomOfStore()
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

// randomOfStore is RandomKey without a transaction.
func (k Keyspace) randomOfStore() (key string, err error) {
	s := k.store
	if err := s.guard.check(); err != nil {
		return "", err
	}
	if s.base.Len(k.ns) <= fewKeys {
		err = s.View(func(tx *Tx) error {
			if tx, err = tx.Use(k.ns); err == nil {
				key, err = tx.Keyspace().RandomKey()
			}
			return err
		})
		return key, err
	}
	const tries = 100 // expired keys are skipped
	for range tries {
		key, ok, err := s.base.RandomKey(k.ns, rand.Uint64)
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
