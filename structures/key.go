package structures

import "github.com/stavedb/stave/keydir"

// Key is a key, whatever it holds.
type Key struct {
	Txn Txn
	Key string
}

// Type says what the key holds, None if it does not exist. O(1).
func (k Key) Type() (keydir.Type, error) {
	slot, _, err := k.Txn.Find(k.Key)
	return slot.Type.Public(), err
}

func (k Key) exists() (bool, error) {
	typ, err := k.Type()
	return typ != keydir.None, err
}

// Delete deletes the key and says whether it existed. O(1).
func (k Key) Delete() (bool, error) { return deleteKey(k.Txn, k.Key) }

func deleteKey(t Base, key string) (bool, error) {
	existed, err := t.Drop(key)
	return existed, notifyReplaced(t, EventNone, key, existed, 0, err)
}

// Expire gives the key a deadline in Unix milliseconds if it exists and c, which is
// about deadlines, allows, and says whether it did. A deadline that is not after now deletes the
// key. O(log n) in the number of deadlines.
func (k Key) Expire(ms, now int64, c Condition) (bool, error) {
	if err := c.checkExpire(); err != nil {
		return false, err
	}
	if exists, err := k.exists(); err != nil || !exists {
		return false, err
	}
	current, set := k.Txn.Deadline(k.Key)
	if !c.allowsDeadline(ms, current, set) {
		return false, nil
	}
	if ms <= now {
		return k.Delete()
	}
	return true, notifyUnless(k.Txn, EventExpire, k.Key, k.Txn.SetDeadline(k.Key, ms))
}

// Deadline returns the key's deadline in Unix milliseconds and whether it has
// one; ok says whether the key exists. O(1).
func (k Key) Deadline() (ms int64, set, ok bool, err error) {
	exists, err := k.exists()
	if err != nil || !exists {
		return 0, false, false, err
	}
	ms, set = k.Txn.Deadline(k.Key)
	return ms, set, true, nil
}

// Persist takes the key's deadline away and says whether it had one. O(log n)
// in the number of deadlines.
func (k Key) Persist() (bool, error) {
	if exists, err := k.exists(); err != nil || !exists {
		return false, err
	}
	return persist(k.Txn, k.Key)
}

func persist(t Base, key string) (bool, error) {
	had, err := t.ClearDeadline(key)
	if had && err == nil {
		t.Notify(EventPersist, key)
	}
	return had, err
}

// Rename moves the key to another name, replacing the key of that name, if c holds for
// it. ok says whether the key exists. O(n).
func (k Key) Rename(to string, c Condition) (moved, ok bool, err error) {
	if k.Key == to {
		ok, err = k.exists()
		return ok && c.Holds(true), ok, err
	}
	moved, ok, err = k.move(k.Txn, to, c)
	if moved && err == nil {
		k.Txn.Notify(EventRenameFrom, k.Key)
		k.Txn.Notify(EventRenameTo, to)
	}
	return moved, ok, err
}
