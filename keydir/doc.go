// Package keydir is the index of the log in memory: it knows the type of every key, the
// location of its records and, for collections, the names of the elements in order.
//
// It has two levels:
//
//   - A [Directory] maps the keys of one namespace to slots: the [Type], and the location of
//     a string's record or a reference to a collection. It keeps hashes and no keys, so the
//     caller proves a key against its record.
//   - A [Collection] is a hash, list, set, sorted set, stream or long string. It has its key, and the
//     names of its elements with their locations, ordered and counted: the i-th element and
//     the rank of an element take O(log n).
//
// A [Loc] is a location in the log. A [Seed] is the secret under which names are hashed. A
// [Dropped] is a collection removed in O(1), whose locations are counted later. A [Dump]
// turns a stripe into bytes, and a [Loader] does the inverse; together they make the INDEX
// file.
//
// The files are named by these nouns: slots_* hold the keys, collection_* the elements,
// arena_* the memory of collections, dump_* the INDEX.
//
// # Guarantees
//
// Hashes and sets of up to 512 elements are in order of insertion. Reads change nothing. A scan by hash sees every slot or element that exists all the while
// exactly once, however the tables grow and shrink. No single change takes more than some
// hundred microseconds. A dump that is damaged is refused and never panics. Invariants of the
// memory are numbered K1 to K9 where they are kept; the tests verify them all.
//
// # Memory
//
// Nothing here holds a pointer per entry, so the garbage collector has little to mark. Slots take 16 bytes each, in
// tables that are between seven and nine tenths full. A small collection is one block of bytes; a big one consists of
// pages of bytes. An entry of a hash or set takes 10 bytes and its name, one of a big sorted set 27 bytes and its name
// twice, one of a stream nine or ten bytes with its id, and about a tenth more for rounding and references. At most
// about an eighth of that memory is free. Tables, blocks and pages grow and shrink in place or reuse memory, so that
// loading leaves little garbage and deleting releases memory.
//
// # Locks
//
// A key and everything known about it belong to the stripe of its hash, see [StripeOf].
// Callers hold a lock for each stripe: shared to read, exclusive to change. Without a lock
// they may read the counters Len, LenDeadlines, LenFieldDeadlines, Bytes and EntryBytes, note visits, and call
// [Directory.TryGet]. The package has one lock of its own, around the pages that the tables
// of all stripes share. It has no goroutines and reads no clock.
//
// # Caveats
//
// Hashes collide: two keys may have the same hash, so callers try every slot that
// [Directory.Find] returns. Names are up to [MaxName] bytes of any kind. All small
// collections of one stripe, and each big collection, take up to 16 GiB: callers check
// [Collection.Full] and [Directory.Full] before they add.
package keydir
