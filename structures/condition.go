package structures

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

// Holds says whether a condition about existence holds.
func (c Condition) Holds(exists bool) bool {
	return !(c&IfAbsent != 0 && exists) && !(c&IfPresent != 0 && !exists)
}
