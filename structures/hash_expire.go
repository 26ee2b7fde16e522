package structures

import (
	"math"
	"strconv"

	"github.com/stavedb/stave/internal/ordered"
)

// Deadlines of fields. A field's deadline is a record of its own, in the commit of the write that sets it. The
// tombstone of the field or of the key removes it too. It outlives a new value: HINCRBY writes nothing more for it,
// HSET of a field that has one writes a tombstone of it. In RAM the deadlines of a hash are a second collection
// alongside it, made as a sorted set is, with the deadlines as scores: one search finds a field's deadline, one rank
// counts the passed ones, and a hash without deadlines takes not a byte more.
//
// Every call sees a hash at one moment (hash_view.go): expired fields are hidden, not counted, and start afresh when
// they are written. A hash of which all fields have expired is gone as if it had expired itself. Package db keeps for
// each hash with deadlines a moment before which none of its fields expires, and deletes expired fields in the
// background, a hundred at a time under the lock. That moment may be too early after a deadline has been removed, never
// too late; the cycle corrects it.

// FieldResult is what a call did to the deadline of one field, by the number
// that Redis replies.
type FieldResult int8

// The results.
const (
	FieldMissing    FieldResult = -2 // there is no such field
	FieldWithoutTTL FieldResult = -1 // it has no deadline
	FieldUnchanged  FieldResult = 0  // the condition does not hold
	FieldChanged    FieldResult = 1  // the deadline has been set, or removed
	FieldDeleted    FieldResult = 2  // the deadline had passed: the field has been deleted
)

func (r FieldResult) String() string {
	switch r {
	case FieldMissing:
		return "missing"
	case FieldWithoutTTL:
		return "without TTL"
	case FieldUnchanged:
		return "unchanged"
	case FieldChanged:
		return "changed"
	case FieldDeleted:
		return "deleted"
	}
	return "FieldResult(" + strconv.Itoa(int(r)) + ")"
}

// LastFieldDeadline is the last moment that a field's deadline may be, in Unix
// milliseconds, as in Redis.
const LastFieldDeadline = 1<<46 - 1

// checkFieldDeadline refuses moments that Redis refuses.
func checkFieldDeadline(ms int64) error {
	if ms > LastFieldDeadline {
		return ErrExpireTime
	}
	return nil
}

// Expire gives fields a deadline in Unix milliseconds, each that exists and for
// which c holds, and calls visit with what became of each of them, in their
// order. A deadline that is not after now deletes the field. O(log n) a field.
func (h Hash) Expire(ms, now int64, c Condition, fields []string, visit func(i int, r FieldResult)) error {
	if err := c.checkExpire(); err != nil {
		return err
	}
	if err := checkFieldDeadline(ms); err != nil {
		return err
	}
	v, err := h.open()
	if err != nil {
		return err
	}
	var done expiryCount
	for i, field := range fields {
		r, err := v.expireIf(field, ms, now, c)
		if err != nil {
			return err
		}
		done.count(r)
		visit(i, r)
	}
	return v.notifyExpiry(done)
}

// expireIf is Expire of one field.
func (v *hashView) expireIf(field string, ms, now int64, c Condition) (FieldResult, error) {
	if _, ok := v.get(field); !ok {
		return FieldMissing, nil
	}
	current, set := v.deadline(field)
	if !c.allowsDeadline(ms, current, set) {
		return FieldUnchanged, nil
	}
	if ms <= now {
		_, err := v.delete(field)
		return FieldDeleted, err
	}
	return FieldChanged, v.expire(field, ms)
}

// expiryCount counts what became of fields.
type expiryCount struct{ set, deleted int }

func (e *expiryCount) count(r FieldResult) {
	switch r {
	case FieldChanged:
		e.set++
	case FieldDeleted:
		e.deleted++
	}
}

// notifyExpiry notifies of fields that were deleted or got a deadline; with the last
// field the key goes.
func (v *hashView) notifyExpiry(e expiryCount) error {
	switch {
	case e.deleted > 0:
		return v.afterDelete(EventHDel)
	case e.set > 0:
		v.hash.Txn.Notify(EventHExpire, v.hash.Key)
	}
	return nil
}

// NoDeadline is what Deadlines returns for a field that has none, and NoField for one that does not
// exist.
const (
	NoDeadline = math.MaxInt64
	NoField    = math.MinInt64
)

// Deadlines calls visit with the deadline in Unix milliseconds of each of several
// fields, in their order, NoDeadline, or NoField. O(log n) a field.
func (h Hash) Deadlines(fields []string, visit func(i int, ms int64)) error {
	v, err := h.open()
	if err != nil {
		return err
	}
	for i, field := range fields {
		ms := int64(NoField)
		if _, ok := v.get(field); ok {
			if ms, ok = v.deadline(field); !ok {
				ms = NoDeadline
			}
		}
		visit(i, ms)
	}
	return nil
}

// VisitTimed is Visit with the deadline of each field in Unix milliseconds, or NoDeadline; start
// gets the first of them. O(n).
func (h Hash) VisitTimed(start func(n int, first int64), visit func(name, value []byte, ms int64) bool) error {
	v, err := h.open()
	if err != nil {
		return err
	}
	first := int64(NoDeadline)
	if v.deadlines.Valid() {
		v.deadlines.AscendRank(v.expired, func(_ []byte, score uint64) bool {
			first = ordered.ToInt(score)
			return false
		})
	}
	start(v.len(), first)
	if v.len() > 0 {
		err := v.eachValue(v.each, func(name, value []byte) bool {
			ms, ok := v.deadline(text(name))
			if !ok {
				ms = NoDeadline
			}
			return visit(name, value, ms)
		})
		if err != nil {
			return err
		}
	}
	return h.Txn.Step(0)
}

// Persist takes the deadlines of fields away, and calls visit with what became of
// each of them, in their order. O(log n) a field.
func (h Hash) Persist(fields []string, visit func(i int, r FieldResult)) error {
	v, err := h.open()
	if err != nil {
		return err
	}
	changed := false
	for i, field := range fields {
		r := FieldMissing
		if _, ok := v.get(field); ok {
			r = FieldWithoutTTL
			if _, ok := v.deadline(field); ok {
				if err := v.persist(field); err != nil {
					return err
				}
				r, changed = FieldChanged, true
			}
		}
		visit(i, r)
	}
	if changed {
		h.Txn.Notify(EventHPersist, h.Key)
	}
	return nil
}

// FieldDeadline says what becomes of the deadlines of fields that are read or
// written.
type FieldDeadline struct {
	Change DeadlineChange
	MS     int64 // of SetDeadlines, in Unix milliseconds
}

// DeadlineChange is what becomes of a deadline.
type DeadlineChange uint8

// The changes. A deadline that is set but not after now deletes the field.
const (
	KeepDeadlines DeadlineChange = iota
	ClearDeadlines
	SetDeadlines
)

// GetAndExpire calls visit with the value of each of several fields, in their
// order, until it returns false, and changes their deadlines; nil stands for a field that does not exist.
// The slice is valid during the call only. O(log n) a field.
func (h Hash) GetAndExpire(o FieldDeadline, now int64, fields []string, visit func(i int, value []byte) bool) error {
	if err := checkFieldDeadline(o.MS); err != nil {
		return err
	}
	v, err := h.open()
	if err != nil {
		return err
	}
	var done expiryCount
	persisted := false
	err = v.getMany(fields, visit, func(field string) error {
		switch _, set := v.deadline(field); {
		case o.Change == SetDeadlines:
			r, err := v.expireIf(field, o.MS, now, 0)
			done.count(r)
			return err
		case o.Change == ClearDeadlines && set:
			persisted = true
			return v.persist(field)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if persisted {
		h.Txn.Notify(EventHPersist, h.Key)
	}
	return v.notifyExpiry(done)
}
