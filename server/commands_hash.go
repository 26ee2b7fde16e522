package server

import (
	"strconv"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

var hashCommands = []*Command{
	{
		Name: "hset", Arity: -4, Flags: Write | DenyOOM | Fast, Group: GroupHash, Keys: oneKey("RW update"), Since: "2.0.0",
		Complexity: "O(n), n being the number of fields given", Summary: "Sets fields of a hash and returns how many are new.",
		Syntax: "key field value [field value ...]", run: hsetCommand,
	},
	{
		Name: "hmset", Arity: -4, Flags: Write | DenyOOM | Fast, Group: GroupHash, Keys: oneKey("RW update"), Since: "2.0.0",
		Complexity: "O(n), n being the number of fields given", Summary: "HSET with another reply.",
		Syntax: "key field value [field value ...]", run: hmsetCommand,
	},
	{
		Name: "hsetnx", Arity: 4, Flags: Write | DenyOOM | Fast, Group: GroupHash, Keys: oneKey("RW insert"), Since: "2.0.0",
		Complexity: "O(1)", Summary: "Sets a field of a hash unless it exists.", Syntax: "key field value",
		run: func(c *call) error { return c.flag(c.tx.Hash(c.key(1)).PutIfAbsent(c.key(2), c.arg(3))) },
	},
	{
		Name: "hget", Arity: 3, Flags: ReadOnly | Fast, Group: GroupHash, Keys: oneKey("RO access"), Since: "2.0.0", Complexity: "O(1)",
		Summary: "Returns the value of a field of a hash.", Syntax: "key field", run: hgetCommand,
	},
	{
		Name: "hmget", Arity: -3, Flags: ReadOnly | Fast, Group: GroupHash, Keys: oneKey("RO access"), Since: "2.0.0",
		Complexity: "O(n), n being the number of fields given", Summary: "Returns the values of several fields of a hash.",
		Syntax: "key field [field ...]", run: hmgetCommand,
	},
	{
		Name: "hgetall", Arity: 2, Flags: ReadOnly, Group: GroupHash, Keys: oneKey("RO access"), Since: "2.0.0",
		Complexity: "O(n), n being the size of the hash", Summary: "Returns all fields of a hash with their values.", Syntax: "key",
		run: hgetallCommand,
	},
	{
		Name: "hkeys", Arity: 2, Flags: ReadOnly, Group: GroupHash, Keys: oneKey("RO access"), Since: "2.0.0",
		Complexity: "O(n), n being the size of the hash", Summary: "Returns the names of all fields of a hash.", Syntax: "key",
		run: func(c *call) error {
			return c.tx.Hash(c.key(1)).VisitFields(c.out.Array, func(name []byte) bool {
				c.out.Bulk(name)
				return !c.out.Exceeded()
			})
		},
	},
	{
		Name: "hvals", Arity: 2, Flags: ReadOnly, Group: GroupHash, Keys: oneKey("RO access"), Since: "2.0.0",
		Complexity: "O(n), n being the size of the hash", Summary: "Returns the values of all fields of a hash.", Syntax: "key",
		run: func(c *call) error {
			return c.tx.Hash(c.key(1)).Visit(c.out.Array, func(_, value []byte) bool {
				c.out.Bulk(value)
				return !c.out.Exceeded()
			})
		},
	},
	{
		Name: "hdel", Arity: -3, Flags: Write | Fast, Group: GroupHash, Keys: oneKey("RW delete"), Since: "2.0.0",
		Complexity: "O(n), n being the number of fields given", Summary: "Deletes fields of a hash and returns how many existed.",
		Syntax: "key field [field ...]", run: func(c *call) error { return c.int(c.tx.Hash(c.key(1)).Delete(c.strings(2)...)) },
	},
	{
		Name: "hlen", Arity: 2, Flags: ReadOnly | Fast, Group: GroupHash, Keys: oneKey("RO"), Since: "2.0.0", Complexity: "O(1)",
		Summary: "Returns the number of fields of a hash.", Syntax: "key",
		run: func(c *call) error { return c.int(c.tx.Hash(c.key(1)).Len()) },
	},
	{
		Name: "hexists", Arity: 3, Flags: ReadOnly | Fast, Group: GroupHash, Keys: oneKey("RO"), Since: "2.0.0", Complexity: "O(1)",
		Summary: "Says whether a field of a hash exists.", Syntax: "key field",
		run: func(c *call) error { return c.flag(c.tx.Hash(c.key(1)).Has(c.key(2))) },
	},
	{
		Name: "hincrby", Arity: 4, Flags: Write | DenyOOM | Fast, Group: GroupHash, Keys: oneKey("RW access update"), Since: "2.0.0",
		Complexity: "O(1)", Summary: "Adds to the integer in a field of a hash.", Syntax: "key field increment", run: hincrbyCommand,
	},
	{
		Name: "hscan", Arity: -3, Flags: ReadOnly, Group: GroupHash, Keys: oneKey("RO access"), Since: "2.8.0",
		Complexity: "O(1) a call, O(n) for the whole hash", Summary: "Returns some fields of a hash and where to go on.",
		Syntax: "key cursor [MATCH pattern] [COUNT count] [NOVALUES]", run: hscanCommand,
	},
}

// fields reads field value field value ...
func (c *call) fields() ([]db.Field, error) {
	if len(c.args)%2 != 0 {
		return nil, errArity(c.command.Name)
	}
	fields := make([]db.Field, 0, len(c.args)/2-1)
	for i := 2; i < len(c.args); i += 2 {
		fields = append(fields, db.Field{Name: c.key(i), Value: c.arg(i + 1)})
	}
	return fields, nil
}

func hsetCommand(c *call) error {
	fields, err := c.fields()
	if err != nil {
		return err
	}
	return c.int(c.tx.Hash(c.key(1)).PutAll(fields...))
}

func hmsetCommand(c *call) error {
	fields, err := c.fields()
	if err != nil {
		return err
	}
	if _, err := c.tx.Hash(c.key(1)).PutAll(fields...); err != nil {
		return err
	}
	return c.ok()
}

func hgetCommand(c *call) error {
	return c.appendedBulk(c.tx.Hash(c.key(1)).AppendTo(c.out.BeginBulk(), c.key(2)))
}

func hmgetCommand(c *call) error {
	values, err := c.tx.Hash(c.key(1)).GetMany(c.strings(2)...)
	return c.bulksOrNulls(values, err)
}

func hgetallCommand(c *call) error {
	return c.tx.Hash(c.key(1)).Visit(c.out.Map, func(name, value []byte) bool {
		c.out.Bulk(name)
		c.out.Bulk(value)
		return !c.out.Exceeded()
	})
}

func hincrbyCommand(c *call) error {
	delta, err := c.parseInt(3)
	if err != nil {
		return err
	}
	return c.int64(c.tx.Hash(c.key(1)).Incr(c.key(2), delta))
}

// scanCursor does what HSCAN, SSCAN and ZSCAN begin with, in Redis's order: the cursor, the type of the key, the options.
// A key that does not exist gives an empty last page, and done.
func (c *call) scanCursor(want db.Type, other func(i int) (int, error)) (cursor uint64, o scanOptions, done bool, err error) {
	if cursor, err = c.parseCursor(2); err != nil {
		return 0, o, false, err
	}
	held, err := c.tx.Key(c.key(1)).Type()
	switch {
	case err != nil:
		return 0, o, false, err
	case held == db.TypeNone:
		c.scanHeader(0, 0)
		return 0, o, true, nil
	case held != want:
		return 0, o, false, structures.ErrWrongType
	}
	o, err = c.scanOptions(3, other)
	return cursor, o, false, err
}

// scanHeader starts the reply of a scan whose page has n replies.
func (c *call) scanHeader(next uint64, n int) {
	var digits [20]byte
	c.out.Array(2)
	c.out.Bulk(strconv.AppendUint(digits[:0], next, 10))
	c.out.Array(n)
}

func hscanCommand(c *call) error {
	noValues := false
	cursor, o, done, err := c.scanCursor(db.TypeHash, func(i int) (int, error) {
		if !c.is(i, "novalues") {
			return 0, nil
		}
		noValues = true
		return 1, nil
	})
	if err != nil || done {
		return err
	}
	o.NoValues = noValues
	fields, next, err := c.tx.Hash(c.key(1)).Scan(cursor, o.ScanOptions)
	if err != nil {
		return err
	}
	fields = dropUnmatched(o, fields, func(f db.Field) string { return f.Name })
	if noValues {
		c.scanHeader(next, len(fields))
	} else {
		c.scanHeader(next, 2*len(fields))
	}
	for _, f := range fields {
		c.out.BulkString(f.Name)
		if !noValues {
			c.out.Bulk(f.Value)
		}
	}
	return nil
}
