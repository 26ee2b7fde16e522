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
func (k Key) Delete() (bool, error) {
	existed, err := k.Txn.Drop(k.Key)
	return existed, notifyReplaced(k.Txn, EventNone, k.Key, existed, 0, err)
}

// ExpireCondition restricts when a deadline is set; the values combine with |.
type ExpireCondition uint8

// Conditions for Key.Expire. A key without a deadline counts as one that
// expires after any moment.
const (
	ExpireIfNone   ExpireCondition = 1 << iota // NX: the key has no deadline
	ExpireIfAny                                // XX: the key has one
	ExpireIfLater                              // GT: the new deadline is later
	ExpireIfSooner                             // LT: the new deadline is sooner
)

func (c ExpireCondition) check() error {
	switch {
	case c&ExpireIfNone != 0 && c != ExpireIfNone:
		return ErrExpireNX
	case c&ExpireIfLater != 0 && c&ExpireIfSooner != 0:
		return ErrExpireGTLT
	}
	return nil
}

// allows says whether a deadline may replace the current one, if set.
func (c ExpireCondition) allows(ms, current int64, set bool) bool {
	switch {
	case c&ExpireIfNone != 0 && set,
		c&ExpireIfAny != 0 && !set,
		c&ExpireIfLater != 0 && (!set || ms <= current),
		c&ExpireIfSooner != 0 && set && ms >= current:
		return false
	}
	return true
}

// Expire gives the key a deadline in Unix milliseconds if it exists and c
// allows, and says whether it did. A deadline that is not after now deletes the
// key. O(log n) in the number of deadlines.
func (k Key) Expire(ms, now int64, c ExpireCondition) (bool, error) {
	if err := c.check(); err != nil {
		return false, err
	}
	if exists, err := k.exists(); err != nil || !exists {
		return false, err
	}
	current, set := k.Txn.Deadline(k.Key)
	if !c.allows(ms, current, set) {
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

func persist(t Txn, key string) (bool, error) {
	had, err := t.ClearDeadline(key)
	if had && err == nil {
		t.Notify(EventPersist, key)
	}
	return had, err
}

// Rename moves the key to another name, replacing that key. It returns false if the key does not
// exist. O(n).
func (k Key) Rename(to string) (ok bool, err error) {
	exists, err := k.exists()
	if err != nil || !exists || k.Key == to {
		return exists, err
	}
	return true, k.rename(to)
}

func (k Key) rename(to string) error {
	_, err := k.move(k.Txn, to, true)
	if err == nil {
		k.Txn.Notify(EventRenameFrom, k.Key)
		k.Txn.Notify(EventRenameTo, to)
	}
	return err
}

// RenameIfAbsent is Rename unless the other name exists; moved says whether it
// was free, ok whether the key exists. O(n).
func (k Key) RenameIfAbsent(to string) (moved, ok bool, err error) {
	exists, err := k.exists()
	if err != nil || !exists {
		return false, false, err
	}
	taken, err := Key{Txn: k.Txn, Key: to}.exists()
	if err != nil || taken {
		return false, true, err
	}
	return true, true, k.rename(to)
}
