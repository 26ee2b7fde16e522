package structures

import "github.com/stavedb/stave/keydir"

// Txn is what the types need of a store: facts about one key at a time, inside one atomic unit that reads its own
// writes. Input may be reused after return. It is the union of what the interfaces below have by concern, for calls that
// deal with keys of any type; each type asks for no more than its own (StringTxn, HashTxn ...).
type Txn interface {
	Base
	Strings
	Elements
	Scores
	Indexes
	FieldDeadlines
	Entries
	Groups
}

// Base is what every type needs.
type Base interface {
	Keys
	Values
	Deadlines
	Steps
	Events
}

// What the single types need.
type (
	// StringTxn is for strings, whose chunks are elements with an index.
	StringTxn interface {
		Base
		Strings
		Indexes
	}
	// HashTxn is for hashes.
	HashTxn interface {
		Base
		Elements
		FieldDeadlines
	}
	// SetTxn is for sets.
	SetTxn interface {
		Base
		Elements
	}
	// SortedSetTxn is for sorted sets.
	SortedSetTxn interface {
		Base
		Elements
		Scores
	}
	// ListTxn is for lists.
	ListTxn interface {
		Base
		Indexes
	}
	// StreamTxn is for streams and their groups.
	StreamTxn interface {
		Base
		Entries
		Groups
	}
)

// Keys are what keys hold as a whole.
type Keys interface {
	// Find says what key holds now. Slot.Type is None if the key is absent or
	// expired; the Collection is valid for collections.
	Find(key string) (keydir.Slot, keydir.Collection, error)
	// Collection finds or makes the collection at key. The caller has checked the
	// type.
	Collection(key string, t keydir.Type) (keydir.Collection, error)
	// Drop deletes key whole, with its deadline, and says whether it was there.
	Drop(key string) (bool, error)
}

// Values are read from the log.
type Values interface {
	// Value appends to dst the value of a record that Find or a collection gave loc for, once it is proved to be that
	// of the key and the element. elem is a hash's field, the index of a chunk as AppendIndex has it, the place in a list as AppendPlace has it, the id
	// of an entry as its record has it, or empty for a string.
	Value(dst []byte, key, elem string, t keydir.Type, loc keydir.Loc) ([]byte, error)
	// Values is Value of several elements: it appends their values to dst, one after another, and where each ends to
	// ends. It may stop after any but the first, so that long values do not take all memory.
	Values(dst []byte, ends []int, key string, elems []string, t keydir.Type, locs []keydir.Loc) ([]byte, []int, error)
	// ValuePart is Value of the bytes from one position to another, as far as there are any.
	ValuePart(dst []byte, key, elem string, t keydir.Type, loc keydir.Loc, from, to int) ([]byte, error)
	// ValueLen is the length of what Value would append.
	ValueLen(key, elem string, t keydir.Type, loc keydir.Loc) (int, error)
}

// Strings are written in one record, or in chunks.
type Strings interface {
	// PutString makes key a string in one record, whatever it held before. The
	// deadline stays.
	PutString(key string, value []byte) error
	// PutChunks makes key a string in chunks of size bytes, whatever it held
	// before. The deadline stays. If value is empty, chunks have to follow.
	PutChunks(key string, value []byte, size int) (keydir.Collection, error)
	// ChunkSize is into how many bytes strings are cut that are long when they are set.
	ChunkSize() int
}

// Elements are those of a collection that have names: fields and members.
type Elements interface {
	// PutElem writes a hash field, or a set member with a nil value.
	PutElem(key string, f keydir.Collection, elem string, value []byte) error
	// DeleteElem deletes from a hash, a set or a sorted set, and says whether
	// elem was there.
	DeleteElem(key string, f keydir.Collection, elem string) (bool, error)
}

// Scores are those of members.
type Scores interface {
	// PutScored writes a sorted set's member. score is in the order-preserving
	// form of internal/ordered.
	PutScored(key string, f keydir.Collection, elem string, score uint64) error
}

// Indexes are the elements of a list, and the chunks of a string.
type Indexes interface {
	// PutIndex writes a list element, or a chunk of a string.
	PutIndex(key string, f keydir.Collection, index int64, value []byte) error
	// PutPlace writes a list element at any place.
	PutPlace(key string, f keydir.Collection, at keydir.ListPlace, value []byte) error
	// DeleteRange deletes the elements of a list from one place to another, both included, and returns how many there
	// were. O(1) on disk.
	DeleteRange(key string, f keydir.Collection, from, to keydir.ListPlace) (int, error)
}

// Entries are those of a stream, and what is known of it besides them.
type Entries interface {
	// PutEntry adds an entry to a stream, after all others.
	PutEntry(key string, f keydir.Collection, id keydir.StreamID, value []byte) error
	// DeleteEntry deletes an entry of a stream, and says whether it was there; then PutStreamMeta follows.
	DeleteEntry(key string, f keydir.Collection, id keydir.StreamID) (bool, error)
	// StreamMeta is what is known of a stream besides its entries, and LastEntryID the Last of it.
	StreamMeta(key string, f keydir.Collection) (keydir.StreamMeta, error)
	LastEntryID(key string, f keydir.Collection) (keydir.StreamID, error)
	// PutStreamMeta writes that, and removes all entries before First, which never goes back. Len is as counted.
	PutStreamMeta(key string, f keydir.Collection, m keydir.StreamMeta) error
	// Unwatched is the transaction for writes that are no change to who watches the key, and have no event.
	Unwatched() StreamTxn
}

// Groups are the consumer groups of a stream, with consumers and pending entries (keydir/streamgroups.go).
type Groups interface {
	// StreamGroups is what the groups of a stream have (keydir/streamgroups.go); a collection that is not valid if it
	// has none.
	StreamGroups(key string) (keydir.Collection, error)
	// PutGroups writes an element of it, and DeleteGroups removes one, or all that the name of a tombstone says, and
	// returns how many there were. all is what StreamGroups returns, or not valid if the caller does not know it.
	PutGroups(key string, all keydir.Collection, elem string, value []byte) error
	DeleteGroups(key string, all keydir.Collection, elem string) (int, error)
	// NotedGroup is where a call notes the group that it has looked up, nil if nowhere, and the version of the
	// transaction: a number that differs after each write, and after a rollback.
	NotedGroup() (noted *NotedGroup, version uint64)
}

// Deadlines are those of keys.
type Deadlines interface {
	// Deadline is the Unix millisecond from which key is gone.
	Deadline(key string) (ms int64, ok bool)
	// SetDeadline gives a key that exists a deadline, replacing any other.
	SetDeadline(key string, ms int64) error
	// ClearDeadline takes the deadline away and says whether there was one.
	ClearDeadline(key string) (bool, error)
}

// FieldDeadlines are those of the fields of a hash.
type FieldDeadlines interface {
	// FieldDeadlines are the deadlines of a hash's fields, by field and in order,
	// and the moment of the atomic unit in Unix milliseconds; a collection that is not
	// valid if no field has one. A score is a deadline in the order-preserving form
	// of internal/ordered. From its deadline on a field is as good as gone, but
	// Find only hides keys of which nothing else is left.
	FieldDeadlines(key string) (deadlines keydir.Collection, now int64, err error)
	// SetFieldDeadline gives a field that exists a deadline, replacing any other.
	SetFieldDeadline(key, field string, ms int64) error
	// ClearFieldDeadline takes the deadline of a field away and says whether there
	// was one. PutElem leaves it, DeleteElem takes it too.
	ClearFieldDeadline(key, field string) (bool, error)
}

// Steps are how a call that takes long lets others work, and ends early.
type Steps interface {
	// Yield is called between two steps of a call that makes many: the transaction may let others work, on other
	// keys, before it continues. What it has read stays right, but a name that is memory of a collection which is not
	// Collection.Private may be gone.
	Yield()
	// Step is called by what takes long and calls nothing else of the Txn meanwhile, with the work since the last call:
	// a walk of one element is 1. With an error the call is to end, which is the end of the atomic unit.
	Step(work int) error
	// Room is called before n bytes that are many are read into memory at once. With an error the call is to end.
	Room(n int) error
	// Apart runs fn, which takes long and uses nothing of the Txn but Step, while others may work.
	Apart(fn func())
}

// Events are for listeners.
type Events interface {
	// Notify reports what a call has done to key, for listeners. It is called once the call cannot
	// fail any more but for the store.
	Notify(e EventKind, key string)
}

// open finds the collection at key and proves its type. A key that is absent
// gives the zero Collection and no error.
func open(t Base, key string, want keydir.Type) (keydir.Collection, error) {
	slot, f, err := t.Find(key)
	switch {
	case err != nil || slot.Type == keydir.None:
		return keydir.Collection{}, err
	case slot.Type != want:
		return keydir.Collection{}, ErrWrongType
	}
	return f, nil
}

// create is open for writers: an absent collection is made. The caller puts at
// least one element into it.
func create(t Base, key string, want keydir.Type) (keydir.Collection, error) {
	f, err := open(t, key, want)
	if err != nil || f.Valid() {
		return f, err
	}
	return t.Collection(key, want)
}

// afterDelete is called after elements were deleted, by which event. The last one
// takes the key with it, and a key that is made again must not inherit the
// deadline.
func afterDelete(t Base, key string, f keydir.Collection, e EventKind) error {
	t.Notify(e, key)
	if f.Len() > 0 {
		return nil
	}
	_, err := t.ClearDeadline(key)
	return notifyUnless(t, EventDel, key, err)
}

// dropAll is for calls that delete all elements at once, by which event.
func dropAll(t Base, key string, e EventKind) error {
	_, err := t.Drop(key)
	if err == nil {
		t.Notify(e, key)
		t.Notify(EventDel, key)
	}
	return err
}
