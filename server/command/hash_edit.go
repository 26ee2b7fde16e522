package command

import (
	"math"
)

// HRANDFIELD chooses with the source of randomness of package db; handlers have none of their own.
// HGETDEL is Redis 8.0's, with the argument FIELDS that the commands of hash_expire.go have.

// hashEditCommands are those that choose fields at random or take them out.
var hashEditCommands = InGroup(GroupHash, []*Command{
	{Name: "hincrbyfloat", Arity: 4, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"),
		Run: func(c *Call) error { return c.text(c.Tx.Hash(c.Key(1)).IncrDecimal(c.Key(2), c.Key(3))) }},
	{Name: "hstrlen", Arity: 3, Flags: ReadOnly | Fast, Keys: OneKey("RO"),
		Run: func(c *Call) error { return c.Int(c.Tx.Hash(c.Key(1)).ValueLen(c.Key(2))) }},
	{Name: "hrandfield", Arity: -2, Flags: ReadOnly, Keys: OneKey("RO access"), Run: hrandfieldCommand},
	{Name: "hgetdel", Arity: -5, Flags: Write | Fast, Keys: OneKey("RW access delete"), Run: hgetdelCommand},
})

// hrandfieldCommand is HRANDFIELD. A positive count gives distinct fields, a negative one as many
// as it says, with repetitions; without a count the reply is one field or null. The order of the
// checks is Redis's, and the key comes last: a count out of range is refused for a key that does
// not exist. WITHVALUES halves the range of counts, because in RESP2 the reply has two elements for
// each field.
func hrandfieldCommand(c *Call) error {
	h := c.Tx.Hash(c.Key(1))
	if len(c.Args) == 2 {
		found := false
		err := h.VisitRandomFields(1, nil, func(name []byte) bool {
			found = true
			c.Out.Bulk(name)
			return true
		})
		if err == nil && !found {
			c.Out.Null()
		}
		return err
	}
	count, err := c.Args.parseSigned(2)
	switch {
	case err != nil:
		return err
	case len(c.Args) > 4 || len(c.Args) == 4 && !c.Args.Is(3, "withvalues"):
		return ErrSyntax
	case len(c.Args) == 3:
		// A negative count may be any number: the limit of a reply stops it long before memory
		// does.
		return h.VisitRandomFields(int(count), c.Out.Array, c.eachBulk)
	case count < -math.MaxInt64/2 || count > math.MaxInt64/2:
		return Error("ERR value is out of range")
	}
	if c.Out.Version() == 2 {
		return h.VisitRandom(int(count), func(n int) { c.Out.Array(2 * n) }, c.eachPair)
	}
	return h.VisitRandom(int(count), c.Out.Array, func(name, value []byte) bool {
		c.Out.Array(2)
		return c.eachPair(name, value)
	})
}

// hgetdelCommand is HGETDEL. The values are read before the fields are deleted, in one transaction;
// with the last field the key goes. A null stands for a field that does not exist.
func hgetdelCommand(c *Call) error {
	h, fields, err := c.hashFields()
	if err != nil {
		return err
	}
	c.Out.Array(len(fields))
	return h.VisitAndDelete(fields, c.eachOrNull)
}
