// Package calls has the type of serverside.DB, and is where package db fills it in. It is a package of its own, and the
// types of db are parameters, because db imports it.
package calls

import "context"

// Change is something that a commit has done to a key, or a read in between that NoteRead has noted.
type Change struct {
	Namespace int
	Key       string // "" for a whole namespace
	// Whole is set for a namespace that has been emptied or swapped.
	Whole bool
	// Read is set for a read.
	Read bool
	// Origin is what SetOrigin has set; 0 by default, and for what the store does by itself.
	Origin int64
}

// Commit is what one commit amounts to, for replicas: commands that have the same outcome on an equal state.
type Commit struct {
	// RESP is the commands for a client that has selected the database First, and leaves Last selected: MULTI ... EXEC
	// where there are several. The store does not use its memory again. It is empty for a commit that the store cannot
	// describe, which no part of it should do: whoever has followed the commits cannot go on from there.
	RESP        []byte
	First, Last int
	Next        uint64 // the sequence number after the commit
	// Slots are the hashes, by Capture.SlotOf, of the keys that it changes, and perhaps of others, 512 at most. There are none if Whole
	// says that it may be any key, as it does without SlotOf.
	Slots []uint16
	Whole bool
}

// Capture says what is captured of each commit.
type Capture struct {
	// Written is called for each commit that changes keys or libraries, right after it is in the log and before anybody
	// sees it, in the order of the log. The log is locked meanwhile: it must not use the store, and must be O(1).
	Written func(Commit)
	// FieldDeadlines includes the deadlines of fields of hashes, which Redis has since 7.4. What they delete is there in
	// any case.
	FieldDeadlines bool
	// SlotOf hashes a key, for Commit.Slots. It must be quick; nil: nobody wants them.
	SlotOf func(key string) uint16
}

// Origin is a position in the stream of a master: of a replication, after so many bytes, when the stream has selected a
// database.
type Origin struct {
	ReplID   [40]byte // hexadecimal digits
	Offset   int64
	Database int
}

// OrphansDir is the directory, in that of the store, with what KeepOrphans keeps: files of package internal/orphans.
const OrphansDir = "orphans"

// IsReplica is the first byte of what SetReplicaOf gets for a replica.
const IsReplica = 'r'

// DB are the functions on stores and transactions. Their locks, and their errors within a closure or a callback of
// the store, and after the end of a transaction, are those of the methods of db.
type DB[Store, Tx, Keyspace any] struct {
	// TryBegin is Store.Begin for event loops, which must not wait but for each other: ok is false if another transaction
	// holds a lock that it needs, or a commit would probably have to wait until the disk has taken what came before.
	// Nothing has begun then, nor after an error. Without keys it locks everything, as Begin does. A call that would have to
	// read from the disk fails with onDisk, unless that is nil, and must be rolled back.
	TryBegin func(s Store, write bool, onDisk error, keys ...string) (tx Tx, ok bool, err error)
	// BeginUnlessLocked is Store.Begin for callers that may wait, but not for other transactions: ok is false if one of
	// them holds a lock that it needs. Nothing has begun then, nor after an error.
	BeginUnlessLocked func(s Store, write bool, keys ...string) (tx Tx, ok bool, err error)
	// Prefetch loads what look-ups of the keys that Begin got will read, so that a transaction on many keys does not
	// wait for each of them. It changes nothing.
	Prefetch func(t Tx)
	// ServeWaiters serves the waiters from what the transaction has written so far, as its end does by itself. It is
	// for a transaction that runs several independent commands. It reports false if a waiter is left that uses keys
	// which the transaction has not locked: it is served right after the end, which should follow now.
	ServeWaiters func(t Tx) bool
	// WaitedKeys returns how many keys are waited for, in all namespaces, and how many of them by a waiter that is to be
	// served when the key is missing. O(n) if one waits for a stream, else O(1).
	WaitedKeys func(s Store) (keys, missing int)

	// SetInterrupt makes calls that take long ask f now and then whether to go on: about every 256 elements, or
	// comparisons of a pattern of so many bytes. Once f returns an error, the call that asked ends with it, and so does
	// the whole transaction: nothing of it is committed. What a call has given to a visitor until then is a part of its
	// result. f must not use the store. nil takes it away.
	SetInterrupt func(t Tx, f func() error)
	// InterruptibleKeyspace is Store.Keyspace, of which Keys and Scan ask f as SetInterrupt says.
	InterruptibleKeyspace func(s Store, f func() error) Keyspace
	// SetRoom makes calls ask f before they read more than 1 MiB at once into memory, with the bytes, or up to an
	// eighth more: the value of a string, a field or an element, and for Key.Dump twice what it returns. The call ends
	// with the error of f, if it returns one. f must not use the store. nil takes it away, and so does the end of the
	// transaction.
	SetRoom func(t Tx, f func(n int) error)

	// SetRollsBack says that the caller rolls back a call that fails, to a savepoint or with the whole transaction. Without
	// it each call that writes has a savepoint of its own.
	SetRollsBack func(t Tx)

	// Held is about how much memory a transaction has taken so far, in bytes: what it has written, what rolls that back, and
	// what the index has grown by.
	Held func(t Tx) int

	// OnChangesAndReads is Store.OnChanges with the origins of the changes, and with the reads that NoteRead has put among
	// them. The ticket is a db.Ticket. fn must not keep the slice.
	OnChangesAndReads func(s Store, fn func(changes []Change, ticket uint64)) (stop func())
	// SetOrigin says who makes the changes that follow, in all namespaces: a number that OnChangesAndReads gets with them.
	SetOrigin func(t Tx, origin int64)
	// NoteRead adds a read of a key to the changes of the transaction. It reports false, and has done nothing, if the
	// transaction has not changed anything that is to be reported: then the read needs no place among the changes.
	NoteRead func(t Tx, key string) bool

	// PutLibrary keeps the text of a library under a name, in place of one that was there; an empty text deletes it.
	// Libraries returns it once the transaction is committed. It fails with db.ErrTooLarge for a name of more than
	// bitcask.MaxLibraryName bytes or a text of more than bitcask.MaxLibrary, and if there are too many. O(n), n being
	// the length of the text and the number of libraries.
	PutLibrary func(t Tx, name, text string) error
	// Libraries returns the texts of all libraries by name. A library that has lost a part, which only damage can bring
	// about, has an empty text and is named in an error that is db.ErrLibrary; the others are returned with it. It
	// locks nothing, and may be called within a transaction, whose own changes it does not show. O(n), n being the
	// length of all texts.
	Libraries func(s Store) (map[string]string, error)
	// LibraryChanges returns a number that grows when a library is put or deleted: while it stays the same, so do they.
	// It may grow without such a change.
	LibraryChanges func(s Store) uint64

	// Capture has the commits that begin from now on captured, until stop: what it returns after holds all of them. It
	// waits for transactions that run. It fails if there is a capture already, and with db.ErrReadOnly.
	Capture func(s Store, c Capture) (stop func(), err error)
	// SnapshotAt is Store.Snapshot. atCut is called at its moment, with the log locked: the snapshot holds exactly the
	// commits that Capture.Written was called for before it.
	SnapshotAt func(s Store, ctx context.Context, atCut func()) (Store, error)
	// NextSequence is the sequence number of the next record to be written: Commit.Next, until another commit, or a note
	// that the store makes of itself, is written.
	NextSequence func(s Store) uint64
	// IsOnDisk reports whether every record before the one of that number is on disk, whatever the sync mode.
	IsOnDisk func(s Store, next uint64) bool

	// Apply makes a transaction, which writes, one of what a master has sent: it may write to the store although that is a
	// replica. Nothing is due in it, and nothing is dropped: a deadline that has passed is as good as any.
	Apply func(t Tx)
	// PutOrigin says where the store stands in the stream of its master once the transaction is committed.
	PutOrigin func(t Tx, o Origin) error
	// Origin is where the store stands; ok is false if it must be synchronized as a whole.
	Origin func(s Store) (o Origin, ok bool)
	// ReplicaOf is what SetReplicaOf has last kept; nil if nothing.
	ReplicaOf func(s Store) []byte
	// SetReplicaOf keeps what a server notes of whose replica the store is, durably, and makes it a replica or ends that. The
	// value of a replica begins with IsReplica, and no other does: so the next Open knows. A replica refuses all writes but
	// those of Apply, and nothing expires in it; what has expired is not shown. Who becomes or ceases to be a replica forgets
	// its Origin.
	SetReplicaOf func(s Store, value []byte, is bool) error
	// HoldWrites refuses writes as those to a replica are, or lets them be again. When it returns, none goes on.
	HoldWrites func(s Store, on bool) error
	// SetReplicaAt makes a store a replica, as SetReplicaOf does, that stands where at says, unless that reports false. at is called
	// when nothing else is written, with what KeepReplication has kept, if nothing was written since: the commit deletes that.
	SetReplicaAt func(s Store, value []byte, at func(kept []byte) (Origin, bool)) error
	// KeepOrigin notes where a replica stands, where that is not in a commit of what came before it: there was nothing to be
	// written. It is durable.
	KeepOrigin func(s Store, o Origin) error
	// KeepOrphans writes a file of what the store has alone into its directory OrphansDir, before that is replaced. It is
	// durable. A file of that name is of the same bytes, and stays: isNew is false. It needs no lock.
	KeepOrphans func(s Store, name string, parts [][]byte) (isNew bool, err error)
	// Orphans are the names in OrphansDir at this moment, also those of other files; a user deletes some. nil where there is
	// no such directory.
	Orphans func(s Store) (names []string, err error)
	// Clock is the store's clock, Unix ms. PassUntil tells a store that takes the place of another one, and is no replica any more, up to
	// which moment that one may have shown what was due as gone: it is not shown again, though the clock has not come that far.
	Clock     func(s Store) int64
	PassUntil func(s Store, moment int64) error
	// Member is what SetMember has noted of the store as a member of a group; nil if it was noted in another store, of which this
	// one is a backup, or not at all.
	Member    func(s Store) []byte
	SetMember func(s Store, value []byte) error
	// BeginLoading makes empty shadows of all namespaces, for Shadow, in place of those of before. It fails where the store has
	// more namespaces than can have shadows, or keys in their place.
	BeginLoading func(s Store) error
	// Shadow returns a transaction in the shadow of a namespace.
	Shadow func(t Tx, namespace int) (Tx, error)
	// Install puts the shadows in the place of the namespaces, and these libraries in the place of all others, and says where
	// the store stands: by one small commit. Nothing else may use the shadows meanwhile.
	Install func(s Store, libraries map[string]string, o Origin) error
	// EndLoading empties the shadows, if there are some.
	EndLoading func(s Store) error
	// FlushWith empties namespaces, without one all, in the commit that says where the store stands; SwapWith exchanges two.
	FlushWith func(s Store, o Origin, namespaces ...int) error
	SwapWith  func(s Store, o Origin, a, b int) error

	// KeepReplication keeps what value returns, which is called when nothing else is written: where the stream for replicas
	// is. TakeReplication returns it, once, if nothing was written since, and nil otherwise. Where something was kept it calls
	// begin first, which begins to capture: so all that is written after the value is captured. Both are durable when they
	// return.
	KeepReplication func(s Store, value func() []byte) error
	TakeReplication func(s Store, begin func() error) (value []byte, err error)

	// MakeRoom reports whether commands that add something may run: the bound of Options.Evict is kept, or there are keys
	// that may be evicted. With evict set it evicts some first, for a millisecond at most; it does not wait for
	// transactions. Every writing transaction begins with that, but those of TryBegin.
	MakeRoom func(s Store, evict bool) bool
	// IsOverBound reports whether MakeRoom would evict something, or a writing transaction would wait for room on the disk. O(1) a
	// namespace.
	IsOverBound func(s Store) bool
	// DiskIsShort reports whether commits that add something are refused, or will be soon, since the directory takes all that
	// Options.Evict allows, and nothing is being freed. O(1).
	DiskIsShort func(s Store) bool
	// Visited reports whether a key has been used since it could have been evicted, or may have been. To ask is not to use it.
	Visited func(t Tx, key string) bool

	// SetExpiryCycle stops the cycle that deletes expired keys and fields, or lets it go on. They are never seen,
	// deleted or not.
	SetExpiryCycle func(s Store, on bool)
}

// registered is a *DB of db's types.
var registered any

// Register makes the functions known. db calls it as it is initialized.
func Register[Store, Tx, Keyspace any](c *DB[Store, Tx, Keyspace]) { registered = c }

// Of returns the functions. The types are those of db, which has registered before any package that names them is
// initialized.
func Of[Store, Tx, Keyspace any]() *DB[Store, Tx, Keyspace] {
	return registered.(*DB[Store, Tx, Keyspace])
}
