package db

import "github.com/stavedb/stave/bitcask"

// Usage is what a key takes on disk and in memory, in bytes.
type Usage = bitcask.Usage

// Usage estimates what the key takes: its records in the log, without what merges have yet to clear away, and its part of the
// index in memory. Of a collection, or a long string, it looks at so many records and takes the rest for as long as these on
// average; 0 means all. It returns ErrNotFound if the key does not exist. O(samples).
func (k Key) Usage(samples int) (Usage, error) {
	t, err := k.read()
	if err != nil {
		return Usage{}, err
	}
	if gone, err := (*txn)(t).hideExpired(k.key); gone || err != nil {
		return Usage{}, found(false, k.done(t, err))
	}
	u, ok, err := t.log.Usage(t.ns, k.key, samples)
	return u, found(ok, k.done(t, err))
}
