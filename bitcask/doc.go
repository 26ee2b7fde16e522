// Package bitcask is an append-only store: commits go to a log of segment files, an index in RAM (package keydir) says
// where each key's newest record is, and merges remove what newer records have made dead.
//
// # Types
//
// A Store is an open store. Get, Put, Delete and All are a plain key-value store; a Tx is one atomic unit of reads and
// writes on the keys that it has locked, strings and collections, of any namespace; a Batch collects puts and deletes
// for one commit. Options configure a store, and Recovery says what Open found and did. Package bitcask/repair makes a
// new store from a damaged one.
//
// # Guarantees
//
// A commit is there whole after a crash, or not at all. In every SyncMode an acknowledged write survives a killed
// process; SyncMode says what a power cut may take. Syncs happen in log order. Every record is verified when it is
// read, by its checksum and its name; damage is a *CorruptError with file and offset, and never taken for a torn end.
// What recovery truncates is kept in a file of its own. A refused or failed call has changed nothing; after a failure
// that leaves the disk's content in doubt the store refuses writes, with ErrFailed.
//
// # Locks
//
// A stripe lock guards everything in RAM about a 256th of the keys, by hash. A transaction takes those of its keys in
// ascending order and holds them until End: keep transactions short, and do not begin one within another. Gets of
// strings take no lock where the processor allows it. Within stripe locks comes the log's, within that the manifest's;
// operations on whole segments (merge, hints, check) take turns before all of them. No lock is held while a commit is
// synced. Edits of the manifest are synced under its lock: they are few, one for a rotation, a merge or a flush.
//
// # Caveats
//
// All keys are in RAM: some 20 bytes per key, 9 to 60 per element. One process has a store open for writing; any number
// may read alongside it, each the state of its Open. A Tx is for one goroutine, and user code that runs within one must
// not call the store. Merges are started by the caller (package merge); without them the log only grows.
//
// # Reading the source
//
// The first word of a file is its noun: store_*, tx_*, index_*, follow_*, snapshot, backup. The log is
// internal/commitlog, bytes are in internal/format, files in internal/segment and internal/manifest; what Open replays
// is in internal/replay, what a merge does in internal/rewrite, and what Check finds in internal/check.
//
// What a Store consists of stands in types with their own locks and rules: lockedManifest, directoryGuard, deadBytes,
// indexState, background know only what they use; firstWrite and lazyIndex finish later what Open has begun. An opener
// is what a directory is read with, by Open, Snapshot, a follower or a rebuild. A Tx has its keys and stripes in txLocks.
package bitcask
