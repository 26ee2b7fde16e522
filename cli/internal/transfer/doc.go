// Package transfer brings keys from a running Redis (or Stave, Valkey ...) to a store and back: [Import], [Verify] and
// [Export] work on a page of keys at a time, with what all of these servers have: SCAN, DUMP, RESTORE and a deadline.
// However a transfer ends, the pages before are stored, and it may be repeated: a key replaces what the other side had
// under its name.
//
// The server may be written to meanwhile: each key is as it was when its page was read. [Verify], once writing has
// stopped, names the ones that have changed since. A connection serves one transfer at a time.
package transfer
