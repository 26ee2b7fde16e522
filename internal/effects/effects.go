// Package effects has the text of what one transaction has written: commands, in the protocol of Redis, that have the
// same outcome on an equal state, whatever the clock says and whoever applies them. Replicas apply them.
//
// Neighbours that differ in their elements alone are one command, as HSET of two fields. A transaction of several
// commands is MULTI ... EXEC, with a SELECT where the database changes.
package effects

import (
	"bytes"
	"slices"
	"strconv"
	"unsafe"
)

const (
	multi = "*1\r\n$5\r\nMULTI\r\n"
	exec  = "*1\r\n$4\r\nEXEC\r\n"

	// maxJoined is how many arguments a command has at most that takes the elements of the next one.
	maxJoined = 128
)

// Effects are those of one transaction so far. The zero value has none, and so has a nil pointer, for Mark and
// RollbackTo. It is for one goroutine.
type Effects struct {
	// SlotOf is a hash of keys; nil: the commands may be of any, for all that Slots says.
	SlotOf func(key string) uint16

	buf         []byte // multi, then the commands
	count       int    // commands, without those that select a database
	first, last int    // databases; valid if count > 0
	open        command
	slots       []uint16 // of SlotOf, also of what was rolled back
	whole       bool     // they would be too many, or a command is of all keys
}

// maxSlots is how many slots of keys a transaction has before it counts as one of all keys.
const maxSlots = 512

// command is the place of the last command, while it may take further elements.
type command struct {
	start    int // of the header with the number of arguments
	from, to int // the elements
	args     int // 0: it takes none
}

// Mark is a moment of a transaction.
type Mark struct{ size, count, last int }

// Reserve makes room for n bytes of commands, before the first.
func (e *Effects) Reserve(n int) { e.buf = make([]byte, 0, len(multi)+n+len(exec)) }

// Mark marks this moment.
func (e *Effects) Mark() Mark {
	if e == nil {
		return Mark{}
	}
	e.open = command{}
	return Mark{len(e.buf), e.count, e.last}
}

// RollbackTo forgets what was added since a moment.
func (e *Effects) RollbackTo(m Mark) {
	if e != nil {
		e.buf, e.count, e.last, e.open = e.buf[:min(m.size, len(e.buf))], m.count, m.last, command{}
	}
}

// Since reports whether anything was added since a moment.
func (e *Effects) Since(m Mark) bool { return e.count > m.count }

// Describe replaces what was added since a moment, if anything was, by one command.
func (e *Effects) Describe(m Mark, database int, args ...string) {
	if e.Since(m) {
		e.RollbackTo(m)
		e.Add(database, args...)
	}
}

// Len is how many bytes the commands take.
func (e *Effects) Len() int { return len(e.buf) }

// Add adds a command on a database.
func (e *Effects) Add(database int, args ...string) {
	e.add(database, 0, 0, args)
	e.open = command{}
}

// Join adds a command of which the arguments after the first head and before the last tail are elements. If the command
// before it has the same head and tail, that one gets the elements.
func (e *Effects) Join(database, head, tail int, args ...string) {
	before, same := e.open, database == e.last
	now := e.add(database, head, tail, args)
	added := len(args) - head - tail
	if before.args == 0 || !same || before.args+added > maxJoined || !e.alike(before, now) {
		e.open = now
		return
	}
	// The tail is as long as that of the command before, so the first copy ends before it.
	end := before.to + copy(e.buf[before.to:], e.buf[now.from:now.to])
	e.buf = e.buf[:end+copy(e.buf[end:], e.buf[now.to:])]
	before.to = end
	e.count--
	e.open = e.grow(before, added)
}

// Slots are those of the keys that the commands name, at least: perhaps of others, and the same one again. whole says that it may be
// any key. It is to be asked before Take.
func (e *Effects) Slots() (slots []uint16, whole bool) {
	if e.whole || e.SlotOf == nil {
		return nil, true
	}
	return e.slots, false
}

// noteKeys notes of which keys a command is.
func (e *Effects) noteKeys(args []string) {
	var keys []string
	switch args[0] {
	case "FLUSHDB", "FLUSHALL", "SWAPDB", "FUNCTION":
		e.whole = true
		return
	case "XGROUP":
		keys = args[2:3]
	case "COPY", "RENAME", "MOVE":
		keys = args[1:3] // the database of MOVE does no harm
	default:
		keys = args[1:2]
	}
	for _, key := range keys {
		slot := e.SlotOf(key)
		if n := len(e.slots); n > 0 && e.slots[n-1] == slot {
			continue
		}
		if len(e.slots) == maxSlots {
			e.whole = true
			return
		}
		e.slots = append(e.slots, slot)
	}
}

// add appends a command.
func (e *Effects) add(database, head, tail int, args []string) (c command) {
	if e.SlotOf != nil && !e.whole {
		e.noteKeys(args)
	}
	size := 0
	for _, arg := range args {
		size += len(arg) + len("$\r\n\r\n") + digits(len(arg))
	}
	if len(e.buf) == 0 {
		e.buf = append(slices.Grow(e.buf, len(multi)+headerLen(len(args))+size+len(exec)), multi...)
	}
	switch {
	case e.count == 0:
		e.first = database
	case e.last != database:
		e.buf = appendArg(append(e.buf, "*2\r\n$6\r\nSELECT\r\n"...), strconv.Itoa(database))
	}
	e.last = database
	e.count++
	c = command{start: len(e.buf), args: len(args)}
	e.buf = appendHeader(slices.Grow(e.buf, headerLen(len(args))+size), '*', len(args))
	for i, arg := range args {
		if i == head {
			c.from = len(e.buf)
		}
		if i == len(args)-tail {
			c.to = len(e.buf)
		}
		e.buf = appendArg(e.buf, arg)
	}
	if tail == 0 {
		c.to = len(e.buf)
	}
	return c
}

// alike reports whether two commands, which follow each other, have the same arguments around their elements.
func (e *Effects) alike(a, b command) bool {
	head := func(c command) []byte { return e.buf[c.start+headerLen(c.args) : c.from] }
	return bytes.Equal(head(a), head(b)) && bytes.Equal(e.buf[a.to:b.start], e.buf[b.to:])
}

// grow gives the last command its number of arguments after it has got more.
func (e *Effects) grow(c command, added int) command {
	longer := headerLen(c.args+added) - headerLen(c.args)
	if longer > 0 {
		e.buf = slices.Insert(e.buf, c.start, make([]byte, longer)...)
	}
	c.args, c.from, c.to = c.args+added, c.from+longer, c.to+longer
	appendHeader(e.buf[:c.start], '*', c.args)
	return c
}

// Take returns the commands, which the Effects forget: nil if there are none. They are for a client that has selected
// the database first, and leave last selected.
func (e *Effects) Take() (resp []byte, first, last int) {
	resp, first, last = e.buf, e.first, e.last
	switch {
	case e.count == 0:
		resp = nil
	case e.count == 1:
		resp = resp[len(multi):]
	default:
		resp = append(resp, exec...)
	}
	*e = Effects{}
	return resp, first, last
}

func appendArg(dst []byte, arg string) []byte {
	return append(append(appendHeader(dst, '$', len(arg)), arg...), "\r\n"...)
}

func appendHeader(dst []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, kind), int64(n), 10), "\r\n"...)
}

// headerLen is the length of the header of a command.
func headerLen(args int) int { return len("*\r\n") + digits(args) }

func digits(n int) int {
	d := 1
	for ; n >= 10; n /= 10 {
		d++
	}
	return d
}

// Text is b as an argument. It shares the memory of b, which the methods copy before they return.
func Text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
