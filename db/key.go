package db

import (
	"time"

	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
)

// Key is a handle on a key, whatever it holds.
type Key struct{ handle }

// Key returns a handle on key. It reads nothing.
func (s *Store) Key(key string) Key { return Key{s.handle(key)} }

// Key returns a handle on key, inside the transaction. It reads nothing.
func (t *Tx) Key(key string) Key { return Key{t.handle(key)} }

// Type says what a key holds.
type Type = keydir.Type

// The types of a key. TypeNone is that of a key that does not exist.
const (
	TypeNone      = keydir.None
	TypeString    = keydir.String
	TypeHash      = keydir.Hash
	TypeList      = keydir.List
	TypeSet       = keydir.Set
	TypeSortedSet = keydir.ZSet
	TypeStream    = keydir.Stream
)

// NoTTL is the time that a key without a deadline has to live.
const NoTTL time.Duration = -1

// Delete deletes the key and says whether it existed. O(1): what a collection holds is freed in the background. With the
// condition IfEqual or IfNotEqual the key must hold a string, and Delete says whether it was there and the condition held.
// O(length) then.
func (k Key) Delete(conditions ...WriteOption) (bool, error) {
	return call(k.handle, writing, func(t *Tx) (bool, error) {
		all, err := t.fold(conditions)
		switch {
		case err != nil:
			return false, err
		case all.condition != 0 || all.deadline != clearDeadline || all.old:
			return false, structures.ErrSyntax
		case all.compare != nil:
			return (structures.String{Txn: t.txn(), Key: k.key}).DeleteIf(*all.compare)
		}
		return k.on(t).Delete()
	})
}

// Exists says whether the key exists. O(1).
func (k Key) Exists() (bool, error) {
	typ, err := k.Type()
	return typ != TypeNone, err
}

// Type says what the key holds, TypeNone if it does not exist. O(1).
func (k Key) Type() (Type, error) {
	if k.store != nil && k.store.opts.Observe == nil {
		if err := k.store.guard.check(); err != nil {
			return TypeNone, err
		}
		switch k.store.base.TryHas(k.ns, k.key) {
		case keydir.LookupHit:
			return TypeString, nil
		case keydir.LookupMiss:
			return TypeNone, nil
		}
	}
	return call(k.handle, reading, func(t *Tx) (Type, error) { return k.on(t).Type() })
}

// Expire lets the key expire after d, counted in whole milliseconds, if it exists and all conditions hold, and says
// whether it did so. Conditions are about deadlines: IfAbsent and IfPresent ask whether the key has one, IfGreater and
// IfLess whether the new one is later or sooner. The key is deleted at once if d is not positive. It fails with
// structures.ErrExpireNX or structures.ErrExpireGTLT if the conditions contradict each other. O(log n) in the number of
// deadlines.
func (k Key) Expire(d time.Duration, conditions ...WriteOption) (bool, error) {
	return k.expire(func(now int64) int64 { return now + d.Milliseconds() }, conditions)
}

// ExpireAt is Expire with a moment, with a precision of one millisecond. The key is deleted at once if the moment has
// passed. O(log n) in the number of deadlines.
func (k Key) ExpireAt(at time.Time, conditions ...WriteOption) (bool, error) {
	return k.expire(func(int64) int64 { return at.UnixMilli() }, conditions)
}

func (k Key) expire(when func(now int64) (ms int64), conditions []WriteOption) (bool, error) {
	condition, err := conditionOf(conditions)
	if err != nil {
		return false, err
	}
	return call(k.handle, writing, func(t *Tx) (bool, error) {
		return k.on(t).Expire(when(t.now()), t.passedFor(), condition)
	})
}

// Deadline returns the moment from which the key is gone, the zero time if it has none. It returns ErrNotFound if the
// key does not exist. O(1).
func (k Key) Deadline() (time.Time, error) {
	var set, ok bool
	ms, err := call(k.handle, reading, func(t *Tx) (ms int64, err error) {
		ms, set, ok, err = k.on(t).Deadline()
		return ms, err
	})
	if err = found(ok, err); err != nil || !set {
		return time.Time{}, err
	}
	return time.UnixMilli(ms), nil
}

// TTL returns the time that the key has left to live, in whole milliseconds, and NoTTL if it has no deadline. It
// returns ErrNotFound if the key does not exist. O(1).
func (k Key) TTL() (time.Duration, error) {
	var set, ok bool
	left, err := call(k.handle, reading, func(t *Tx) (_ int64, err error) {
		now, ms := t.now(), int64(0)
		ms, set, ok, err = k.on(t).Deadline()
		return ms - now, err
	})
	if err = found(ok, err); err != nil {
		return 0, err
	}
	if !set {
		return NoTTL, nil
	}
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(left, 0), longest)) * time.Millisecond, nil
}

// Persist takes the key's deadline away and says whether it had one. O(log n) in the number of deadlines.
func (k Key) Persist() (bool, error) {
	return call(k.handle, writing, func(t *Tx) (bool, error) { return k.on(t).Persist() })
}

// Rename moves the content of the key, with its deadline, to another name, replacing that key. It returns ErrNotFound
// if the key does not exist, and with IfAbsent ErrExists if the other one does. O(n): every record carries the name and
// is written again.
func (k Key) Rename(to string, options ...WriteOption) error {
	condition, err := conditionOf(options)
	if err != nil {
		return err
	}
	return k.transfer("RENAME", k.ns, to, options, func(t, _ *Tx) (moved, ok bool, err error) { return k.on(t).Rename(to, condition) })
}

func (k Key) on(t *Tx) structures.Key { return structures.Key{Txn: t.txn(), Key: k.key} }
