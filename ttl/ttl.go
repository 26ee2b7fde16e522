// Package ttl keeps the deadlines of keys: when each key that has one expires. What it is that expires is its user's matter: an
// Index may as well say when the first field of each hash does.
//
//   - [Index] holds them in memory, by key and in order of time.
//   - [Write] and [Read] keep a checkpoint of an Index in the file TTL, so that opening a store need not search the log.
//   - [Cycle] takes due keys from Indexes within bounds and hands them to functions that delete them.
//
// A deadline is an absolute time in Unix milliseconds. A key is due when its deadline is not after now, and now is always
// an argument: this package decides nothing by the clock, deletes nothing by itself and starts no goroutine. The truth
// about a deadline is its record in the log; a checkpoint that is missing, damaged or of another time costs a search of
// the log and never a deadline.
package ttl

// Entry is one deadline.
type Entry struct {
	Namespace uint32
	Key       string
	Deadline  int64 // Unix milliseconds.
}
