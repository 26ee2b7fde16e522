package server

import (
	"math"
)

var hashEditCommands = []*Command{
	{
		Name: "hincrbyfloat", Arity: 4, Flags: Write | DenyOOM | Fast, Group: GroupHash, Keys: oneKey("RW access update"), Since: "2.6.0",
		Complexity: "O(1)", Summary: "Adds to the float in a field of a hash.", Syntax: "key field increment",
		run: func(c *call) error { return c.text(c.tx.Hash(c.key(1)).IncrDecimal(c.key(2), c.key(3))) },
	},
	{
		Name: "hstrlen", Arity: 3, Flags: ReadOnly | Fast, Group: GroupHash, Keys: oneKey("RO"), Since: "3.2.0", Complexity: "O(1)",
		Summary: "Returns the length of the value of a field of a hash.", Syntax: "key field",
		run: func(c *call) error { return c.int(c.tx.Hash(c.key(1)).ValueLen(c.key(2))) },
	},
	{
		Name: "hrandfield", Arity: -2, Flags: ReadOnly, Group: GroupHash, Keys: oneKey("RO access"), Since: "6.2.0",
		Complexity: "O(n), n being the number of fields returned", Summary: "Returns fields of a hash chosen at random.",
		Syntax: "key [count [WITHVALUES]]", run: hrandfieldCommand,
	},
	{
		Name: "hgetdel", Arity: -5, Flags: Write | Fast, Group: GroupHash, Keys: oneKey("RW access delete"), Since: "8.0.0",
		Complexity: "O(n), n being the number of fields given", Summary: "Returns the values of several fields of a hash and deletes them.",
		Syntax: "key FIELDS numfields field [field ...]", run: hgetdelCommand,
	},
}

func hrandfieldCommand(c *call) error {
	h := c.tx.Hash(c.key(1))
	if len(c.args) == 2 {
		found := false
		err := h.VisitRandomFields(1, nil, func(name []byte) bool {
			found = true
			c.out.Bulk(name)
			return true
		})
		if err == nil && !found {
			c.out.Null()
		}
		return err
	}
	count, err := c.parseInt(2)
	switch {
	case err != nil:
		return err
	case count == math.MinInt64:
		return errBetween(-math.MaxInt64, math.MaxInt64)
	case len(c.args) > 4 || len(c.args) == 4 && !c.is(3, "withvalues"):
		return errSyntax
	case len(c.args) == 3:
		// A negative count may be any number: the limit of a reply stops it long before memory does.
		return h.VisitRandomFields(int(count), c.out.Array, func(name []byte) bool {
			c.out.Bulk(name)
			return !c.out.Exceeded()
		})
	case count < -math.MaxInt64/2 || count > math.MaxInt64/2:
		return replyError("ERR value is out of range")
	}
	pairs := c.out.Version() == 3
	start := c.out.Array
	if !pairs {
		start = func(n int) { c.out.Array(2 * n) }
	}
	return h.VisitRandom(int(count), start, func(name, value []byte) bool {
		if pairs {
			c.out.Array(2)
		}
		c.out.Bulk(name)
		c.out.Bulk(value)
		return !c.out.Exceeded()
	})
}

// hgetdelCommand is HGETDEL.
func hgetdelCommand(c *call) error {
	h, err := c.hashOf()
	if err != nil {
		return err
	}
	fields, err := c.fieldList(2, errFieldsCount)
	if err != nil {
		return err
	}
	values, err := h.GetAndDelete(fields...)
	return c.bulksOrNulls(values, err)
}
