// Package db is Stave's embedded API: Redis's data types on an append-only log.
//
// Four types carry most of it. A [Store] is an open directory. Typed handles ([String], [Hash], [List], [Set],
// [SortedSet], [Stream], [Key], [Keyspace]; and [Bitmap] and [HyperLogLog], which are views of a string) are small
// values that name a key; making one reads nothing. A [Tx] is what View and Update give their closure; it has the same
// handles. [Options] say how to open.
//
//	store, err := db.Open("data", nil)
//	err = store.Hash("user:1").Put("name", []byte("Ada"))      // a call on a store is atomic by itself
//	err = store.Update(func(tx *db.Tx) error { ... })           // many calls, one commit; error or panic: nothing happened
//	err = store.View(func(tx *db.Tx) error { ... })             // everything read is from one moment
//
// # Guarantees
//
// A commit is all there or not at all. Calls on different keys run concurrently; a call on one key waits for another on
// the same key, so no read-modify-write loses an update. Readers wait for no disk sync and no merge. Update runs alone;
// View runs alongside other readers while writers wait for it. [Options].Sync decides when an acknowledged write is on
// disk; it survives a killed process in every mode. Using a store within its own View or Update fails with [ErrNested]
// wherever that would wait for itself and the stack of the goroutine shows it: see [Store.View].
//
// Names (keys, fields, members) are strings of any bytes, at most 65,535 of them; payloads are byte slices of at most
// 512 MiB. Input may be reused after a call returns, output belongs to the caller. A key that has reached its deadline
// is never seen again, whether or not the background cycle has deleted it yet.
//
// # Conditions
//
// Conditions and deadlines are the last arguments of a call that writes, values of [WriteOption] such as [IfAbsent] and
// [TTL]:
//
//	err := store.String("lock").Put(owner, db.IfAbsent, db.TTL(time.Minute)) // ErrExists: somebody has it
//
// # Callbacks
//
// A program's callbacks may panic, or end their goroutine (runtime.Goexit, t.FailNow): no key stays locked, and the
// panic continues in the caller. Up to the commit everything is rolled back; after it, as in a function of
// [Store.OnEvents] or [Store.OnChanges], the commit stands, and all other listeners get it. The panic of a log handler
// loses its record and nothing else; it must not end its goroutine, which may be one of the store's own.
//
// A callback that runs while keys are locked cannot use the store: visitors, functions of OnEvents and OnChanges,
// [Wait].Do, reports of [Store.Check], [Options].Observe, the progress of [Store.Merge], the handler of
// [Options].Logger. It gets [ErrNested], and so do writes to a transaction from within a visit of it. The body of a
// loop over an iterator of a store's handle is free: nothing is locked there. Between [Store.Begin] and [Tx.End] nested
// use is not noticed, and code that may panic there defers the End.
//
// Any use of a [Tx] that has ended, or of a handle or an iterator of it, fails with [ErrTxDone] and changes nothing. An
// iterator yields the error.
//
// # Errors
//
// [ErrNotFound] and [ErrExists] are this package's. Refusals that Redis knows, such as [ErrWrongType], are values of
// structures.Error whose text is Redis's; nothing was written. [ErrNotLocked] is for a key that the caller has not named
// to UpdateKeys. Errors of the log say which file and offset (*bitcask.CorruptError) or which limit ([ErrTooLarge],
// bitcask.ErrIndexFull). After a failed sync every write fails with [ErrFailed] until the store is opened again.
//
// # Iterators
//
// Methods such as Hash.All and SortedSet.All range over the content of a key. They read a page at a time and hold no
// lock while the loop's body runs: the body may change what it ranges over, and on a store's handle other writers may
// write between the pages. What is there from the start of the loop to its end is seen exactly once. Each step yields
// an element and a nil error; a read error ends the loop, with the zero element:
//
//	for f, err := range store.Hash("k").All() {
//		if err != nil {
//			return err
//		}
//		...
//	}
//
// In a transaction View and Update return the error of such a loop as well, whatever its body does with it.
//
// The content of a collection can be read in four ways, each for a purpose: an iterator (All), which holds no lock; a
// slice of one moment (Entries, Fields, Members, Range); a visit (Visit, VisitFields, VisitRandom), which is of one
// moment and copies nothing, but keeps the key locked; and a scan (Scan), whose cursor can be kept between calls.
//
// # Events
//
// [Store.Events] reports what commits do to keys, by Redis's names for events, in the order of the commits.
// [Store.OnChanges] reports the keys that each commit has changed, for caches of what has been read.
//
// # Backups
//
// [Store.Backup] copies an open store at one moment, while reads and writes continue. Full segments are shared by hard
// links. [Store.BackupSince] does the same on another disk, where an earlier backup has most of them. [Store.BackupTo]
// writes the same copy to a stream.
//
// # Snapshots
//
// [Store.Snapshot] gives a read-only store of one moment, for long reads: a [Store.View] of a second stops every writer
// for a second, a snapshot none.
package db
