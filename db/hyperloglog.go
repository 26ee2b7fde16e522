package db

import "github.com/stavedb/stave/structures"

// HyperLogLog is a handle on a key that holds a sketch: it estimates how many different elements were added to it, within
// 0.81 % (one standard deviation), in 12 KiB at most. The key is a byte string in Redis's own format. Methods return
// ErrWrongType if the key holds no string, structures.ErrNotSketch if it holds another one, and structures.ErrSketchDamaged
// if the sketch is broken.
type HyperLogLog struct{ handle }

// HyperLogLog returns a handle on the sketch at key. It reads nothing.
func (s *Store) HyperLogLog(key string) HyperLogLog { return HyperLogLog{s.handle(key)} }

// HyperLogLog returns a handle on the sketch at key, inside the transaction. It reads nothing.
func (t *Tx) HyperLogLog(key string) HyperLogLog { return HyperLogLog{t.handle(key)} }

// Add adds elements, and says whether that changed the sketch; a key that does not exist is made, also for no element. The
// deadline stays. O(1) an element, and up to 12 KiB written: many elements are cheapest in one call.
func (l HyperLogLog) Add(elements ...[]byte) (bool, error) {
	return call(l.handle, writing, func(t *Tx) (bool, error) { return structures.HyperLogLog{Txn: t.txn(), Key: l.key}.Add(elements) })
}

// Count estimates how many different elements were added, 0 if the key does not exist. O(1), with a large constant.
func (l HyperLogLog) Count() (uint64, error) {
	return call(l.handle, reading, func(t *Tx) (uint64, error) { return structures.CountHyperLogLogs(t.txn(), []string{l.key}) })
}

// Merge adds what the sketches at other keys have, those that exist; the deadline stays. O(1) a key, with a large constant.
func (l HyperLogLog) Merge(keys ...string) error {
	return l.doKeys(writing, append([]string{l.key}, keys...), func(t *Tx) error { return structures.MergeHyperLogLogs(t.txn(), l.key, keys) })
}

// CountHyperLogLogs estimates how many different elements the sketches at several keys have together. O(1) a key, with a
// large constant.
func (k Keyspace) CountHyperLogLogs(keys ...string) (uint64, error) {
	return callKeys(k.handle, reading, keys, func(t *Tx) (uint64, error) { return structures.CountHyperLogLogs(t.txn(), keys) })
}
