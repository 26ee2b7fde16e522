package server

import (
	"errors"
	"math"

	"github.com/stavedb/stave/db"
)

var stringCommands = []*Command{
	{
		Name: "get", Arity: 2, Flags: ReadOnly | Fast, Group: GroupString, Keys: oneKey("RO access"), Since: "1.0.0",
		Complexity: "O(1)", Summary: "Returns the string at a key.", Syntax: "key", run: getCommand,
	},
	{
		Name: "set", Arity: -3, Flags: Write | DenyOOM, Group: GroupString, Keys: oneKey("RW access update variable_flags"),
		Since: "1.0.0", Complexity: "O(1)", Summary: "Makes a key hold a string, whatever it held before.",
		Syntax: "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
		run:    setCommand,
	},
	{
		Name: "setnx", Arity: 3, Flags: Write | DenyOOM | Fast, Group: GroupString, Keys: oneKey("OW insert"), Since: "1.0.0",
		Complexity: "O(1)", Summary: "Makes a key hold a string unless it exists.", Syntax: "key value", run: setnxCommand,
	},
	{
		Name: "setex", Arity: 4, Flags: Write | DenyOOM, Group: GroupString, Keys: oneKey("OW update"), Since: "2.0.0",
		Complexity: "O(1)", Summary: "Makes a key hold a string that expires after some seconds.", Syntax: "key seconds value",
		run: func(c *call) error { return setWithTTL(c, 1000) },
	},
	{
		Name: "psetex", Arity: 4, Flags: Write | DenyOOM, Group: GroupString, Keys: oneKey("OW update"), Since: "2.6.0",
		Complexity: "O(1)", Summary: "Makes a key hold a string that expires after some milliseconds.", Syntax: "key milliseconds value",
		run: func(c *call) error { return setWithTTL(c, 1) },
	},
	{
		Name: "mget", Arity: -2, Flags: ReadOnly | Fast, Group: GroupString, Keys: manyKeys("RO access"), Since: "1.0.0",
		Complexity: "O(n), n being the number of keys", Summary: "Returns the strings at several keys.", Syntax: "key [key ...]",
		run: mgetCommand,
	},
	{
		Name: "mset", Arity: -3, Flags: Write | DenyOOM, Group: GroupString, Keys: []Keys{{Use: "OW update", First: 1, Last: -1, Step: 2}},
		Since: "1.0.1", Complexity: "O(n), n being the number of keys", Summary: "Makes several keys hold strings, in one commit.",
		Syntax: "key value [key value ...]", run: msetCommand,
	},
	{
		Name: "msetnx", Arity: -3, Flags: Write | DenyOOM, Group: GroupString, Keys: []Keys{{Use: "OW insert", First: 1, Last: -1, Step: 2}},
		Since: "1.0.1", Complexity: "O(n), n being the number of keys", Summary: "Makes several keys hold strings, unless one of them exists.",
		Syntax: "key value [key value ...]", run: msetnxCommand,
	},
	{
		Name: "incr", Arity: 2, Flags: Write | DenyOOM | Fast, Group: GroupString, Keys: oneKey("RW access update"), Since: "1.0.0",
		Complexity: "O(1)", Summary: "Adds one to the integer at a key.", Syntax: "key",
		run: func(c *call) error { return incr(c, 1) },
	},
	{
		Name: "decr", Arity: 2, Flags: Write | DenyOOM | Fast, Group: GroupString, Keys: oneKey("RW access update"), Since: "1.0.0",
		Complexity: "O(1)", Summary: "Subtracts one from the integer at a key.", Syntax: "key",
		run: func(c *call) error { return incr(c, -1) },
	},
	{
		Name: "incrby", Arity: 3, Flags: Write | DenyOOM | Fast, Group: GroupString, Keys: oneKey("RW access update"), Since: "1.0.0",
		Complexity: "O(1)", Summary: "Adds to the integer at a key.", Syntax: "key increment",
		run: func(c *call) error {
			n, err := c.parseInt(2)
			if err != nil {
				return err
			}
			return incr(c, n)
		},
	},
	{
		Name: "decrby", Arity: 3, Flags: Write | DenyOOM | Fast, Group: GroupString, Keys: oneKey("RW access update"), Since: "1.0.0",
		Complexity: "O(1)", Summary: "Subtracts from the integer at a key.", Syntax: "key decrement", run: decrbyCommand,
	},
	{
		Name: "append", Arity: 3, Flags: Write | DenyOOM | Fast, Group: GroupString, Keys: oneKey("RW insert"), Since: "2.0.0",
		Complexity: stringEdit, Summary: "Extends the string at a key and returns its new length.",
		Syntax: "key value", run: func(c *call) error { return c.int(c.tx.String(c.key(1)).Append(c.arg(2))) },
	},
	{
		Name: "strlen", Arity: 2, Flags: ReadOnly | Fast, Group: GroupString, Keys: oneKey("RO"), Since: "2.2.0", Complexity: "O(1)",
		Summary: "Returns the length of the string at a key.", Syntax: "key",
		run: func(c *call) error { return c.int(c.tx.String(c.key(1)).Len()) },
	},
	{
		Name: "getrange", Arity: 4, Flags: ReadOnly, Group: GroupString, Keys: oneKey("RO access"), Since: "2.4.0",
		Complexity: "O(n), n being the length returned, or that of a string up to 64 KiB", Summary: "Returns a part of the string at a key.", Syntax: "key start end", run: getrangeCommand,
	},
	{
		Name: "substr", Arity: 4, Flags: ReadOnly, Group: GroupString, Keys: oneKey("RO access"), Since: "1.0.0",
		Complexity: "O(n), n being the length returned, or that of a string up to 64 KiB", Summary: "The old name of GETRANGE.", Syntax: "key start end", run: getrangeCommand,
	},
}

// bulk replies with a value, or a null if there is none.
func (c *call) bulk(value []byte, err error) error {
	switch {
	case errors.Is(err, db.ErrNotFound):
		c.out.Null()
		return nil
	case err == nil:
		c.out.Bulk(value)
	}
	return err
}

// appendedBulk is bulk for a value that has been appended to what BeginBulk gave.
func (c *call) appendedBulk(b []byte, err error) error {
	if err != nil {
		return c.bulk(nil, err)
	}
	c.out.EndBulk(b)
	return nil
}

func getCommand(c *call) error {
	return c.appendedBulk(c.tx.String(c.key(1)).AppendTo(c.out.BeginBulk()))
}

func getrangeCommand(c *call) error {
	start, err := c.parseInt(2)
	if err != nil {
		return err
	}
	end, err := c.parseInt(3)
	if err != nil {
		return err
	}
	return c.appendedBulk(c.tx.String(c.key(1)).Range(c.out.BeginBulk(), start, end))
}

// setCommand is SET. The order of the checks is Redis's: the words, the deadline, then what the key holds.
func setCommand(c *call) error {
	var o db.SetOptions
	deadline := 0 // index of the word that introduces the deadline
	for i := 3; i < len(c.args); i++ {
		more := i+1 < len(c.args)
		word := c.args[i]
		switch {
		case equalFold(word, "nx") && !o.IfPresent:
			o.IfAbsent = true
		case equalFold(word, "xx") && !o.IfAbsent:
			o.IfPresent = true
		case equalFold(word, "get"):
			o.Get = true
		case equalFold(word, "keepttl") && deadline == 0:
			o.KeepTTL = true
		case isDeadline(word) && more && !o.KeepTTL && (deadline == 0 || sameKeyword(word, c.args[deadline])):
			deadline = i
			i++
		default:
			return errSyntax
		}
	}
	if deadline > 0 {
		var err error
		if o.Deadline, err = c.parseDeadline(deadline, c.arg(deadline+1), "set"); err != nil {
			return err
		}
	}
	result, err := c.tx.String(c.key(1)).Set(c.arg(2), o)
	switch {
	case err != nil:
		return err
	case o.Get && result.Existed:
		c.out.Bulk(result.Old)
	case o.Get || !result.Done:
		c.out.Null()
	default:
		return c.ok()
	}
	return nil
}

func isDeadline(word []byte) bool {
	return equalFold(word, "ex") || equalFold(word, "px") || equalFold(word, "exat") || equalFold(word, "pxat")
}

func sameKeyword(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i]|0x20 != b[i]|0x20 {
			return false
		}
	}
	return true
}

// parseDeadline turns "EX 10" and its relatives into absolute Unix milliseconds.
func (c *call) parseDeadline(word int, number []byte, command string) (ms int64, err error) {
	n, ok := parseInt(number)
	if !ok {
		return 0, errNotInteger
	}
	first := c.args[word][0] | 0x20
	unit := int64(1)
	if first == 'e' {
		unit = 1000
	}
	base := c.now()
	if len(c.args[word]) == 4 { // EXAT, PXAT
		base = 0
	}
	return deadlineOf(n, unit, base, command)
}

// deadlineOf is base + n units, in milliseconds. It refuses what is not positive or overflows.
func deadlineOf(n, unit, base int64, command string) (ms int64, err error) {
	if n <= 0 || n > math.MaxInt64/unit || n*unit > math.MaxInt64-base {
		return 0, errorf("ERR invalid expire time in '%s' command", command)
	}
	return n*unit + base, nil
}

func setWithTTL(c *call, unit int64) error {
	n, err := c.parseInt(2)
	if err != nil {
		return err
	}
	deadline, err := deadlineOf(n, unit, c.now(), c.command.Name)
	if err != nil {
		return err
	}
	if _, err := c.tx.String(c.key(1)).Set(c.arg(3), db.SetOptions{Deadline: deadline}); err != nil {
		return err
	}
	return c.ok()
}

func setnxCommand(c *call) error {
	result, err := c.tx.String(c.key(1)).Set(c.arg(2), db.SetOptions{IfAbsent: true})
	return c.flag(result.Done, err)
}

func mgetCommand(c *call) error {
	keys := c.strings(1)
	c.out.Array(len(keys))
	return c.tx.Keyspace().Visit(keys, func(_ int, value []byte) bool {
		if value == nil {
			c.out.Null()
		} else {
			c.out.Bulk(value)
		}
		return !c.out.Exceeded()
	})
}

// pairs reads key value key value ...
func (c *call) pairs() ([]db.Pair, error) {
	if len(c.args)%2 == 0 {
		return nil, errArity(c.command.Name)
	}
	pairs := make([]db.Pair, 0, len(c.args)/2)
	for i := 1; i < len(c.args); i += 2 {
		pairs = append(pairs, db.Pair{Key: c.key(i), Value: c.arg(i + 1)})
	}
	return pairs, nil
}

func msetCommand(c *call) error {
	pairs, err := c.pairs()
	if err != nil {
		return err
	}
	if err := c.tx.Keyspace().Put(pairs...); err != nil {
		return err
	}
	return c.ok()
}

func msetnxCommand(c *call) error {
	pairs, err := c.pairs()
	if err != nil {
		return err
	}
	done, err := c.tx.Keyspace().PutIfNoneExist(pairs...)
	return c.flag(done, err)
}

func incr(c *call, delta int64) error {
	n, err := c.tx.String(c.key(1)).Incr(delta)
	return c.int64(n, err)
}

func decrbyCommand(c *call) error {
	n, err := c.parseInt(2)
	if err != nil {
		return err
	}
	if n == math.MinInt64 {
		return replyError("ERR decrement would overflow")
	}
	return incr(c, -n)
}
