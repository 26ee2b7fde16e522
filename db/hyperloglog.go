package db

import "github.com/stavedb/stave/structures"

// HyperLogLog is a handle on a key that holds a sketch: it estimates how many different elements were added to it,
// within 0.81 % (one standard deviation), in 12 KiB at most. The key is a byte string in Redis's own format. Methods
// return ErrWrongType if the key holds no string, structures.ErrNotSketch if it holds another one, and
// structures.ErrSketchDamaged if the sketch is broken.
type HyperLogLog struct{ handle }

// HyperLogLog returns a handle on the sketch at key. It reads nothing.
func (s *Store) HyperLogLog(key string) HyperLogLog { return HyperLogLog{s.handle(key)} }

// HyperLogLog returns a handle on the sketch at key, inside the transaction. It reads nothing.
func (t *Tx) HyperLogLog(key string) HyperLogLog { return HyperLogLog{t.handle(key)} }

// Add adds elements, and says whether that changed the sketch; a key that does not exist is made, also for no element.
// The deadline stays. O(1) an element; a sketch of less than 3000 bytes is written whole, a larger one in parts of some
// hundred bytes.
func (l HyperLogLog) Add(elements ...[]byte) (bool, error) {
	return call(l.handle, writing, func(t *Tx) (bool, error) { return structures.HyperLogLog{Txn: t.txn(), Key: l.key}.Add(elements) })
}

// Count estimates how many different elements were added, 0 if the key does not exist. The estimate is kept with the
// sketch until that changes: the first Count after a change writes it, where writing is possible, and does not wait for
// the disk. Within View it only counts. O(1), with a large constant the first time.
func (l HyperLogLog) Count() (uint64, error) { return l.countHyperLogLogs([]string{l.key}) }

// Merge adds what the sketches at other keys have, those that exist; the deadline stays. O(1) a key, with a large
// constant.
func (l HyperLogLog) Merge(keys ...string) error {
	return l.doKeys(writing, append([]string{l.key}, keys...), func(t *Tx) error { return structures.MergeHyperLogLogs(t.txn(), l.key, keys) })
}

// CountHyperLogLogs estimates how many different elements the sketches at several keys have together; of a single key
// it is [HyperLogLog.Count]. O(1) a key, with a large constant.
func (k Keyspace) CountHyperLogLogs(keys ...string) (uint64, error) { return k.countHyperLogLogs(keys) }

// countHyperLogLogs counts, and saves the count if there is one to save and the transaction may write. Of a call that
// is a transaction of its own a second one saves it. If that fails the count is right all the same: the next call
// counts again, and the next write meets the same failure.
func (h handle) countHyperLogLogs(keys []string) (uint64, error) {
	kept := true
	n, err := callKeys(h, reading, keys, func(t *Tx) (n uint64, err error) {
		n, kept, err = structures.CountHyperLogLogs(t.txn(), keys, t.checkWrite() == nil)
		return n, err
	})
	if err != nil || kept || h.tx != nil || h.store.opts.ReadOnly {
		return n, err
	}
	first, err := h.store.beginKeys(writing, keys)
	if err != nil {
		return n, nil
	}
	defer first.recycle()
	later, _, err := structures.CountHyperLogLogs(first.Tx.txn(), keys, true)
	if _, err = first.Tx.finish(err); err != nil {
		return n, nil
	}
	return later, nil
}
