package db

import (
	"time"

	"github.com/stavedb/stave/structures"
)

// Fields of a hash may have deadlines of their own. Such a field is gone from its deadline on, and the last field takes
// the key with it. Writing a field clears its deadline, except where it is said to stay.

// FieldResult is what a call did to the deadline of one field. The numbers are those that Redis replies; its String says
// what they mean.
type FieldResult = structures.FieldResult

// What became of a field.
const (
	FieldMissing    = structures.FieldMissing    // there is no such field
	FieldWithoutTTL = structures.FieldWithoutTTL // it has no deadline to remove
	FieldUnchanged  = structures.FieldUnchanged  // a condition does not hold
	FieldChanged    = structures.FieldChanged    // the deadline has been set, or removed
	FieldDeleted    = structures.FieldDeleted    // the deadline had passed: the field has been deleted
)

// NoField stands for the time that a field which does not exist has left to live.
const NoField time.Duration = -2

// LastFieldDeadline is the last deadline that a field may have, in the year 4199, as in Redis.
var LastFieldDeadline = time.UnixMilli(structures.LastFieldDeadline)

// ExpireFields lets fields expire after d, counted in whole milliseconds, each that exists and for which all
// conditions, of those of Key.Expire, hold, and returns what became of each of them, in their order: FieldMissing,
// FieldUnchanged, FieldChanged or FieldDeleted. Fields are deleted at once if d is not positive. A field without a
// deadline counts as one that expires after any moment. It fails with structures.ErrExpireTime for a moment after
// LastFieldDeadline, and with structures.ErrExpireNX or structures.ErrExpireGTLT if the conditions contradict each
// other. O(log n) a field.
func (h Hash) ExpireFields(d time.Duration, fields []string, conditions ...WriteOption) ([]FieldResult, error) {
	return h.expireFields(func(now int64) int64 { return now + d.Milliseconds() }, fields, conditions)
}

// ExpireFieldsAt is ExpireFields with a moment, with a precision of one millisecond. Fields are deleted at once if the
// moment has passed.
func (h Hash) ExpireFieldsAt(at time.Time, fields []string, conditions ...WriteOption) ([]FieldResult, error) {
	return h.expireFields(func(int64) int64 { return at.UnixMilli() }, fields, conditions)
}

func (h Hash) expireFields(when func(now int64) (ms int64), fields []string, conditions []WriteOption) ([]FieldResult, error) {
	condition, err := conditionOf(conditions)
	if err != nil {
		return nil, err
	}
	results := make([]FieldResult, len(fields))
	err = h.do(writing, func(t *Tx) error {
		return h.on(t).Expire(when(t.now()), t.passedFor(), condition, fields, func(i int, r FieldResult) { results[i] = r })
	})
	return owned(results, err)
}

// PersistFields takes the deadlines of fields away and returns what became of each of them, in their order:
// FieldMissing, FieldWithoutTTL or FieldChanged. O(log n) a field.
func (h Hash) PersistFields(fields ...string) ([]FieldResult, error) {
	results := make([]FieldResult, len(fields))
	err := h.do(writing, func(t *Tx) error {
		return h.on(t).Persist(fields, func(i int, r FieldResult) { results[i] = r })
	})
	return owned(results, err)
}

// FieldDeadline is when a field expires.
type FieldDeadline struct {
	Exists bool      // There is such a field.
	At     time.Time // The moment from which it is gone; the zero time if it has no deadline.
}

// FieldDeadlines returns when each of several fields expires, in their order. O(log n) a field, without a read.
func (h Hash) FieldDeadlines(fields ...string) ([]FieldDeadline, error) {
	list := make([]FieldDeadline, len(fields))
	err := h.do(reading, func(t *Tx) error {
		return h.on(t).Deadlines(fields, func(i int, ms int64) {
			list[i].Exists = ms != structures.NoField
			if list[i].Exists && ms != structures.NoDeadline {
				list[i].At = time.UnixMilli(ms)
			}
		})
	})
	return owned(list, err)
}

// FieldTTLs returns the time that each of several fields has left to live, in whole milliseconds and in their order:
// NoTTL for a field without a deadline, NoField for one that does not exist. O(log n) a field, without a read.
func (h Hash) FieldTTLs(fields ...string) ([]time.Duration, error) {
	list := make([]time.Duration, len(fields))
	err := h.do(reading, func(t *Tx) error {
		return h.on(t).Deadlines(fields, func(i int, ms int64) {
			switch ms {
			case structures.NoField:
				list[i] = NoField
			case structures.NoDeadline:
				list[i] = NoTTL
			default:
				list[i] = time.Duration(ms-t.now()) * time.Millisecond
			}
		})
	})
	return owned(list, err)
}

// GetAndExpire returns the values of several fields, in their order, and lets them expire after d, which is counted in
// whole milliseconds and must be at least one: structures.ErrExpireTime otherwise, and for a moment after
// LastFieldDeadline. nil stands for a field that does not exist. O(log n) a field.
func (h Hash) GetAndExpire(d time.Duration, fields ...string) ([][]byte, error) {
	return collectAll(fields, func(visit func(i int, value []byte) bool) error {
		return h.getAnd(func(now int64) (structures.FieldDeadline, error) {
			if d < time.Millisecond {
				return structures.FieldDeadline{}, structures.ErrExpireTime
			}
			return structures.FieldDeadline{Change: structures.SetDeadlines, MS: now + d.Milliseconds()}, nil
		}, fields, visit)
	})
}

// GetAndExpireAt is GetAndExpire with a moment, with a precision of one millisecond. The fields are deleted at once if
// the moment has passed.
func (h Hash) GetAndExpireAt(at time.Time, fields ...string) ([][]byte, error) {
	return collectAll(fields, func(visit func(i int, value []byte) bool) error { return h.VisitAndExpireAt(at, fields, visit) })
}

// VisitAndExpireAt is GetAndExpireAt for values that need not all be in memory at once: it calls visit with each value,
// in the order of the fields, nil for one that does not exist. If visit returns false, the fields after that one stay
// as they are. The slice is valid during the call only.
func (h Hash) VisitAndExpireAt(at time.Time, fields []string, visit func(i int, value []byte) bool) error {
	return h.getAnd(func(int64) (structures.FieldDeadline, error) {
		return structures.FieldDeadline{Change: structures.SetDeadlines, MS: at.UnixMilli()}, nil
	}, fields, visit)
}

// GetAndPersist returns the values of several fields, in their order, and removes their deadlines; nil stands for a
// field that does not exist. O(log n) a field.
func (h Hash) GetAndPersist(fields ...string) ([][]byte, error) {
	return collectAll(fields, func(visit func(i int, value []byte) bool) error { return h.VisitAndPersist(fields, visit) })
}

// VisitAndPersist is GetAndPersist as VisitAndExpireAt is GetAndExpireAt.
func (h Hash) VisitAndPersist(fields []string, visit func(i int, value []byte) bool) error {
	return h.getAnd(func(int64) (structures.FieldDeadline, error) {
		return structures.FieldDeadline{Change: structures.ClearDeadlines}, nil
	}, fields, visit)
}

func (h Hash) getAnd(change func(now int64) (structures.FieldDeadline, error), fields []string, visit func(i int, value []byte) bool) error {
	return h.do(writing, func(t *Tx) error {
		deadline, err := change(t.now())
		if err != nil {
			return err
		}
		return h.on(t).GetAndExpire(deadline, t.passedFor(), fields, visit)
	})
}

// collectAll returns the values that fn visits, one for each field.
func collectAll(fields []string, fn func(visit func(i int, value []byte) bool) error) ([][]byte, error) {
	values := make([][]byte, len(fields))
	collect := collectAt(values)
	err := fn(func(i int, value []byte) bool { collect(i, value); return true })
	return owned(values, err)
}

// PutWith sets fields in their order. Without options it is PutAll: the fields have no deadline afterwards. TTL and
// ExpireAt give them one, deleting them at once if it has passed, and KeepTTL leaves what they have. With IfAbsent
// nothing is written, and ErrExists returned, if any of the fields exists; with IfPresent, and ErrNotFound, if any does
// not. A TTL that is not positive, or a moment after LastFieldDeadline, gives structures.ErrExpireTime. O(log n) a
// field.
func (h Hash) PutWith(fields []Field, options ...WriteOption) error {
	_, err := h.putWith(fields, options)
	return err
}

// putWith returns how many of the fields are new.
func (h Hash) putWith(fields []Field, options []WriteOption) (n int, err error) {
	ok, err := call(h.handle, writing, func(t *Tx) (ok bool, err error) {
		deadline, condition, err := t.fieldOptions(options)
		if err != nil {
			return false, err
		}
		n, ok, err = h.on(t).PutWith(fields, deadline, t.passedFor(), condition)
		return ok, err
	})
	return n, held(ok, options, err)
}

// VisitTimed is Visit with the deadline of each field in Unix milliseconds; 0 is none. start also gets the first of the
// deadlines. O(n).
func (h Hash) VisitTimed(start func(n int, first int64), visit func(name, value []byte, ms int64) bool) error {
	timed := func(ms int64) int64 {
		if ms == structures.NoDeadline {
			return 0
		}
		return ms
	}
	return h.visit(func(t *Tx) error {
		return h.on(t).VisitTimed(func(n int, first int64) {
			if start != nil {
				start(n, timed(first))
			}
		}, func(name, value []byte, ms int64) bool { return visit(name, value, timed(ms)) })
	})
}
