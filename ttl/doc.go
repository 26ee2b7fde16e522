// Package ttl keeps the deadlines of keys: when each key that has one expires. Its user decides what a name stands for:
// a [Deadlines] may as well say when the first field of each hash expires.
//
//   - [Deadlines] holds them in memory, by key and in order of time.
//   - [Write] and [Read] keep a checkpoint of the deadlines in the file TTL, so that Open need not search the log.
//   - [Cycle] takes due keys within bounds and passes them to functions that delete them.
//
// # How keys expire
//
// Expiry is lazy and sampled, as in Redis. Lazy: every access of a key looks up its deadline, so a key is invisible
// from its deadline on, and a writer that meets an expired key deletes it. Sampled: a background cycle deletes a
// bounded sample of the due keys at a time, so that keys that nobody accesses go, too, and no writer waits long. Redis
// draws its samples at random from the keys that have a deadline, because it keeps no order; here each sample is the
// next due keys in order of time, so no key that is not due is examined.
//
// # Guarantees
//
// A deadline is an absolute time in Unix milliseconds. A key is due when its deadline is not after now, and now is
// always an argument: this package decides nothing by the clock, deletes nothing by itself and starts no goroutine.
// [Cycle] measures its budget by the clock.
//
// I8: the truth about a deadline is its record in the log. A checkpoint that is missing, damaged or of another state
// costs a search of the log, never a deadline. Damage is an error with file and offset ([CorruptError]), and changes
// nothing.
//
// # Memory and locks
//
// A deadline takes 65 to 75 bytes with a key of 16 bytes, without a pointer for each. Deadlines are safe for concurrent
// use: a call locks one of sixteen shards of its namespace; Get of a namespace without deadlines locks nothing.
//
// # Caveats
//
// Calls that concern several keys do not see one moment: concurrent changes may or may not show. Memory of deleted keys
// of one length serves keys of the same length only, until a shard is empty.
package ttl

// Entry is one deadline.
type Entry struct {
	Namespace uint32
	Key       string
	Deadline  int64 // Unix milliseconds.
}
