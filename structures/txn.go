package structures

import "github.com/stavedb/stave/keydir"

// Txn is what the types need of a store: facts about one key at a time, inside
// one atomic unit that reads its own writes. Input may be reused after return.
type Txn interface {
	// Find says what key holds now. Slot.Type is None if the key is absent or
	// expired; the Collection is valid for collections.
	Find(key string) (keydir.Slot, keydir.Collection, error)
	// Value appends to dst the value of a record that Find or a collection gave loc
	// for, once it is proved to be that of the key and the element. elem is a
	// hash's field, the index of a list or a chunk as AppendIndex has it, or empty for a string.
	Value(dst []byte, key, elem string, t keydir.Type, loc keydir.Loc) ([]byte, error)
	// ValueLen is the length of what Value would append.
	ValueLen(key, elem string, t keydir.Type, loc keydir.Loc) (int, error)

	// PutString makes key a string in one record, whatever it held before. The
	// deadline stays.
	PutString(key string, value []byte) error
	// PutChunks makes key a string in chunks of ChunkSize bytes, whatever it held
	// before. The deadline stays. If value is empty, chunks have to follow.
	PutChunks(key string, value []byte) (keydir.Collection, error)
	// ChunkSize is into how many bytes long strings are cut.
	ChunkSize() int
	// Collection finds or makes the collection at key. The caller has checked the
	// type.
	Collection(key string, t keydir.Type) (keydir.Collection, error)
	// PutElem writes a hash field, or a set member with a nil value.
	PutElem(f keydir.Collection, elem string, value []byte) error
	// PutScored writes a sorted set's member. score is in the order-preserving
	// form of internal/ordered.
	PutScored(f keydir.Collection, elem string, score uint64) error
	// PutIndex writes a list element, or a chunk of a string.
	PutIndex(f keydir.Collection, index int64, value []byte) error
	// DeleteElem deletes from a hash, a set or a sorted set, and says whether
	// elem was there.
	DeleteElem(f keydir.Collection, elem string) (bool, error)
	// DeleteIndex deletes from a list.
	DeleteIndex(f keydir.Collection, index int64) (bool, error)

	// Drop deletes key whole, with its deadline, and says whether it was there.
	Drop(key string) (bool, error)

	// Deadline is the Unix millisecond from which key is gone.
	Deadline(key string) (ms int64, ok bool)
	// SetDeadline gives a key that exists a deadline, replacing any other.
	SetDeadline(key string, ms int64) error
	// ClearDeadline takes the deadline away and says whether there was one.
	ClearDeadline(key string) (bool, error)

	// FieldDeadlines are the deadlines of a hash's fields, by field and in order,
	// and the moment of the atomic unit in Unix milliseconds; a collection that is not
	// valid if no field has one. A score is a deadline in the order-preserving form
	// of internal/ordered. From its deadline on a field is as good as gone, but
	// Find only hides keys of which nothing else is left.
	FieldDeadlines(f keydir.Collection) (deadlines keydir.Collection, now int64, err error)
	// SetFieldDeadline gives a field that exists a deadline, replacing any other.
	SetFieldDeadline(f keydir.Collection, field string, ms int64) error
	// ClearFieldDeadline takes the deadline of a field away and says whether there
	// was one. PutElem leaves it, DeleteElem takes it too.
	ClearFieldDeadline(f keydir.Collection, field string) (bool, error)

	// Notify reports what a call has done to key, for listeners. It is called once the call cannot
	// fail any more but for the store.
	Notify(e EventKind, key string)
}

// open finds the collection at key and proves its type. A key that is absent
// gives the zero Collection and no error.
func open(t Txn, key string, want keydir.Type) (keydir.Collection, error) {
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
func create(t Txn, key string, want keydir.Type) (keydir.Collection, error) {
	f, err := open(t, key, want)
	if err != nil || f.Valid() {
		return f, err
	}
	return t.Collection(key, want)
}

// afterDelete is called after elements were deleted, by which event. The last one
// takes the key with it, and a key that is made again must not inherit the
// deadline.
func afterDelete(t Txn, key string, f keydir.Collection, e EventKind) error {
	t.Notify(e, key)
	if f.Len() > 0 {
		return nil
	}
	_, err := t.ClearDeadline(key)
	return notifyUnless(t, EventDel, key, err)
}

// dropAll is for calls that delete all elements at once, by which event.
func dropAll(t Txn, key string, e EventKind) error {
	_, err := t.Drop(key)
	if err == nil {
		t.Notify(e, key)
		t.Notify(EventDel, key)
	}
	return err
}
