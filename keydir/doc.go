// Package keydir is the index of the log in memory: it knows the type of every key, where
// its records lie, and, of collections, the names of the elements in order.
//
// It has two levels. A [Directory] maps the keys of one namespace to slots: the type,
// and the location of a string's record or a reference to a collection. It keeps hashes and no
// keys, so the caller proves a key against its record. A [Collection] has its key, and the names of its elements with their locations, ordered and counted. A [Loc] is
// a place in the log; [Seed] is the secret under which names are hashed.
//
// # Memory
//
// Nothing here holds a pointer per entry. Slots take 16 bytes each, in tables that are
// between seven and nine tenths full. A small collection is one block of bytes; a big one
// is made of pages of bytes. Tables, blocks and pages grow and shrink in place or reuse
// memory, so that loading leaves little for the collector and deleting gives back.
//
// Invariants of the memory are numbered K1 to K9 where they hold; the tests verify them all.
//
// # Concurrency
//
// The package has no goroutines, no clock, and one lock, around the memory that the tables
// of all stripes are made of. A key, with all that is known of it, belongs to the stripe of its hash, see [StripeOf]. Callers hold a lock for each stripe: shared to
// read, exclusive to change. Reads change nothing at all, so any number may run at a time.
// The counters Len, LenDeadlines, LenFieldDeadlines and Bytes may be read without a lock, and [Directory.TryGet]
// searches for a slot without one.
//
// # Limits
//
// Names are up to [MaxName] bytes of any kind. All small collections of one stripe,
// and each big collection, take up to 16 GiB: [Collection.Full] and [Directory.Full] tell in time. No single change costs more than some hundred microseconds.
package keydir
