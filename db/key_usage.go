package db

import "github.com/stavedb/stave/bitcask"

// Usage is what a key takes on disk and in memory, in bytes.
//
//	Disk int64
//	Memory int64
//	Elements int // fields, members or entries; 0 for a string
type Usage = bitcask.Usage

// Usage estimates what the key takes: its records in the log, without what merges have yet to clear away, and its part
// of the index in memory. Of a collection, or a long string, it reads so many records and assumes that the rest are as
// long as these on average; 0 means all. It returns ErrNotFound if the key does not exist. O(samples).
func (k Key) Usage(samples int) (Usage, error) {
	return callFound(k.handle, reading, func(t *Tx) (Usage, bool, error) {
		if gone, err := (*txn)(t).hideExpired(k.key); gone || err != nil {
			return Usage{}, false, err
		}
		return t.base.Usage(t.ns, k.key, samples)
	})
}
