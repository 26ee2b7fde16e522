// Package transfer brings keys from a running Redis (or Stave, Valkey ...) to a store and back: [Import], [Verify] and
// [Export] work on a page of keys at a time, with what all of these servers have: SCAN, DUMP, RESTORE and a deadline.
// However a transfer ends, the pages before are stored, and it may be repeated: a key replaces what the other side had
// under its name.
//
// The server may be written to meanwhile: each key is as it was when its page was read. [Verify], once writing has
// stopped, names the ones that have changed since. A connection serves one transfer at a time.
//
// Three things are left to the caller: the connection, which the package neither makes nor closes; the store, which
// must be open for writing only for [Import]; and what is shown of the progress. A context that ends is the error,
// after what has been stored by then is synced and noted in the state. What the other side refuses is an error, or with
// KeepGoing counted and named; a connection that is lost, or a store that fails, always ends the transfer.
package transfer
