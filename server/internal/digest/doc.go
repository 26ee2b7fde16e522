// Package digest is DEBUG DIGEST: Redis's digest of a value, or of all keys. Equal data have equal digests, in whatever
// order they are kept, and on whichever of the two servers. It proves nothing against somebody who chooses the data.
//
// A [Digest] belongs to one goroutine. What it adds must be locked by the transaction that it is given; AddStore locks
// the whole store.
package digest
