package db

import (
	"errors"
	"time"

	"github.com/stavedb/stave/structures"
)

// ErrExists is returned by writes with the condition IfAbsent if the key, field or member exists.
var ErrExists = errors.New("db: already exists")

// ErrMismatch is returned by writes with the condition IfEqual or IfNotEqual if it does not hold, unless they return whether
// they have written.
var ErrMismatch = errors.New("db: the value is not as expected")

// WriteOption is a condition of a call that writes, or a deadline for what it writes: IfAbsent, IfPresent, IfGreater,
// IfLess, IfEqual, IfNotEqual; TTL, ExpireAt, KeepTTL; and ReturnOld. Options are the last arguments of a call, in any order. Each call says
// what its conditions are about. Options that contradict each other, or that a call cannot take, give
// structures.ErrSyntax, and nothing is written.
type WriteOption struct {
	condition structures.Condition
	compare   *structures.Comparison
	deadline  deadlineOption
	old       bool
	n         int64 // of the deadline: milliseconds from now, or Unix milliseconds
}

type deadlineOption uint8

const (
	clearDeadline deadlineOption = iota
	keepDeadline
	deadlineIn
	deadlineAt
)

// Options without a parameter.
var (
	// IfAbsent writes only what does not exist; a call fails with ErrExists otherwise, unless it returns whether it has
	// written.
	IfAbsent = WriteOption{condition: structures.IfAbsent}
	// IfPresent writes only what exists; a call fails with ErrNotFound otherwise, unless it returns whether it has
	// written.
	IfPresent = WriteOption{condition: structures.IfPresent}
	// IfGreater writes a score or a deadline only if it is greater than the current one. No deadline is later than any.
	IfGreater = WriteOption{condition: structures.IfGreater}
	// IfLess writes a score or a deadline only if it is less than the current one. No deadline is later than any.
	IfLess = WriteOption{condition: structures.IfLess}
	// KeepTTL leaves the deadline as it is; without it a write clears the deadline.
	KeepTTL = WriteOption{deadline: keepDeadline}
	// ReturnOld has String.Set return the value that was there.
	ReturnOld = WriteOption{old: true}
)

// IfEqual writes, or deletes, only if the key holds this value: compare-and-set, and compare-and-delete. A key that does not
// exist has none, and one that holds no string is refused. It contradicts all other conditions. The bytes must not change
// until the call returns.
func IfEqual(value []byte) WriteOption {
	return WriteOption{compare: &structures.Comparison{Value: value}}
}

// IfNotEqual writes only if the key holds another value, or does not exist: the opposite of IfEqual.
func IfNotEqual(value []byte) WriteOption {
	return WriteOption{compare: &structures.Comparison{Value: value, Unequal: true}}
}

// TTL lets what is written expire after d, which is counted in whole milliseconds and must be at least one.
func TTL(d time.Duration) WriteOption { return WriteOption{deadline: deadlineIn, n: d.Milliseconds()} }

// ExpireAt lets what is written expire at a moment, with a precision of one millisecond.
func ExpireAt(at time.Time) WriteOption { return WriteOption{deadline: deadlineAt, n: at.UnixMilli()} }

// fold makes one option of several, whose deadline is none, kept, or in Unix milliseconds.
func (t *Tx) fold(options []WriteOption) (all WriteOption, err error) {
	for _, o := range options {
		all.condition |= o.condition
		all.old = all.old || o.old
		if o.compare != nil {
			if all.compare != nil {
				return all, structures.ErrSyntax
			}
			all.compare = o.compare
		}
		switch {
		case o.deadline == clearDeadline:
			continue
		case all.deadline != clearDeadline && (all.deadline != keepDeadline || o.deadline != keepDeadline):
			return all, structures.ErrSyntax
		case o.deadline == deadlineIn && o.n <= 0:
			return all, structures.ErrExpireTime
		case o.deadline == deadlineIn:
			o.n += t.now()
		}
		all.deadline, all.n = o.deadline, o.n
	}
	return all, nil
}

// setOptions is fold for a string.
func (t *Tx) setOptions(options []WriteOption) (structures.SetOptions, error) {
	all, err := t.fold(options)
	if err == nil && all.deadline == deadlineAt && all.n <= 0 {
		err = structures.ErrExpireTime
	}
	return structures.SetOptions{
		If: all.condition, Compare: all.compare, KeepTTL: all.deadline == keepDeadline, Get: all.old, Deadline: all.n,
	}, err
}

// fieldOptions is fold for fields: a moment that has passed is as good as any.
func (t *Tx) fieldOptions(options []WriteOption) (structures.FieldDeadline, structures.Condition, error) {
	all, err := t.fold(options)
	d := structures.FieldDeadline{Change: structures.SetDeadlines, MS: all.n}
	switch {
	case all.old, all.compare != nil:
		err = structures.ErrSyntax
	case all.deadline == clearDeadline:
		d.Change = structures.ClearDeadlines
	case all.deadline == keepDeadline:
		d.Change = structures.KeepDeadlines
	}
	return d, all.condition, err
}

// conditionOf is fold for a call that takes conditions only.
func conditionOf(options []WriteOption) (c structures.Condition, err error) {
	for _, o := range options {
		if o.deadline != clearDeadline || o.old || o.compare != nil {
			return 0, structures.ErrSyntax
		}
		c |= o.condition
	}
	return c, nil
}

// held turns a condition that does not hold into its error, after any error of the call itself.
func held(ok bool, options []WriteOption, err error) error {
	if err != nil || ok {
		return err
	}
	for _, o := range options {
		switch {
		case o.condition&structures.IfAbsent != 0:
			return ErrExists
		case o.compare != nil:
			return ErrMismatch
		}
	}
	return ErrNotFound
}
