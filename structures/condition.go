package structures

import "bytes"

// Condition restricts a call that writes, by Redis's words. The values combine with |. A call says what its conditions
// are about: a key, all of several fields, members and their scores, or deadlines.
type Condition uint8

// The conditions.
const (
	IfAbsent  Condition = 1 << iota // NX: what would be written does not exist. It contradicts the others
	IfPresent                       // XX: it exists
	IfGreater                       // GT: the new score or deadline is greater than the current one
	IfLess                          // LT: it is less. It contradicts IfGreater
)

// checkExistence refuses conditions that do not ask for one of the two: that something is absent, or that it is
// present.
func (c Condition) checkExistence() error {
	if c > IfPresent {
		return ErrSyntax
	}
	return nil
}

// Comparison is a condition on the value of a string.
type Comparison struct {
	Value []byte
	// Unequal asks for any other value, or for none; without it the value must be this one.
	Unequal bool
}

// holds says whether it does for a key's value, if there is one.
func (c *Comparison) holds(value []byte, exists bool) bool {
	return (exists && bytes.Equal(value, c.Value)) != c.Unequal
}

// Holds says whether a condition about existence holds.
func (c Condition) Holds(exists bool) bool {
	return !(c&IfAbsent != 0 && exists) && !(c&IfPresent != 0 && !exists)
}

// checkExpire refuses conditions on a deadline that contradict each other.
func (c Condition) checkExpire() error {
	switch {
	case c&IfAbsent != 0 && c != IfAbsent:
		return ErrExpireNX
	case c&IfGreater != 0 && c&IfLess != 0:
		return ErrExpireGTLT
	}
	return nil
}

// allowsDeadline says whether a deadline may replace the current one, if set.
// None is later than any other.
func (c Condition) allowsDeadline(ms, current int64, set bool) bool {
	return c.Holds(set) && !(c&IfGreater != 0 && (!set || ms <= current)) && !(c&IfLess != 0 && set && ms >= current)
}

// checkAdd refuses conditions on members that contradict each other.
func (c Condition) checkAdd() error {
	switch {
	case c&IfAbsent != 0 && c&IfPresent != 0:
		return ErrAddNXXX
	case c&IfAbsent != 0 && c != IfAbsent, c&IfGreater != 0 && c&IfLess != 0:
		return ErrAddNXGTLT
	}
	return nil
}

// allowsScore says whether a member may go from its current score, if it exists,
// to another one.
func (c Condition) allowsScore(exists bool, current, score float64) bool {
	return c.Holds(exists) && (!exists || !(c&IfGreater != 0 && score <= current) && !(c&IfLess != 0 && score >= current))
}
