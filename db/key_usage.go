package db

import "github.com/stavedb/stave/bitcask"

// Usage is what a key takes on disk and in memory, in bytes.
//
//	Disk int64
//	Memory int64
type Usage = bitcask.Usage

// Usage estimates what the key takes: its records in the log, without what merges have yet to clear away, and its part of the
// index in memory. Of a collection, or a long string, it reads so many records and assumes that the rest are as long as these on
// average; 0 means all. It returns ErrNotFound if the key does not exist. O(samples).
func (k Key) Usage(samples int) (Usage, error) {
	var ok bool
	u, err := call(k.handle, reading, func(t *Tx) (u Usage, err error) {
		if gone, err := (*txn)(t).hideExpired(k.key); gone || err != nil {
			return u, err
		}
		u, ok, err = t.log.Usage(t.ns, k.key, samples)
		return u, err
	})
	return u, found(ok, err)
}
