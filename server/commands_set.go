package server

import (
	"math"

	"github.com/stavedb/stave/db"
)

var setCommands = []*Command{
	{
		Name: "sadd", Arity: -3, Flags: Write | DenyOOM | Fast, Group: GroupSet, Keys: oneKey("RW insert"), Since: "1.0.0",
		Complexity: "O(1) a member", Summary: "Adds members to a set and returns how many are new.", Syntax: "key member [member ...]",
		run: func(c *call) error { return c.int(c.tx.Set(c.key(1)).Add(c.strings(2)...)) },
	},
	{
		Name: "srem", Arity: -3, Flags: Write | Fast, Group: GroupSet, Keys: oneKey("RW delete"), Since: "1.0.0",
		Complexity: "O(1) a member", Summary: "Removes members from a set and returns how many were there.", Syntax: "key member [member ...]",
		run: func(c *call) error { return c.int(c.tx.Set(c.key(1)).Remove(c.strings(2)...)) },
	},
	{
		Name: "scard", Arity: 2, Flags: ReadOnly | Fast, Group: GroupSet, Keys: oneKey("RO"), Since: "1.0.0", Complexity: "O(1)",
		Summary: "Returns the number of members of a set.", Syntax: "key", run: func(c *call) error { return c.int(c.tx.Set(c.key(1)).Len()) },
	},
	{
		Name: "sismember", Arity: 3, Flags: ReadOnly | Fast, Group: GroupSet, Keys: oneKey("RO"), Since: "1.0.0", Complexity: "O(1)",
		Summary: "Says whether a member is in a set.", Syntax: "key member",
		run: func(c *call) error { return c.flag(c.tx.Set(c.key(1)).Has(c.key(2))) },
	},
	{
		Name: "smismember", Arity: -3, Flags: ReadOnly | Fast, Group: GroupSet, Keys: oneKey("RO access"), Since: "6.2.0", Complexity: "O(1) a member",
		Summary: "Says of several members whether they are in a set.", Syntax: "key member [member ...]", run: smismemberCommand,
	},
	{
		Name: "smembers", Arity: 2, Flags: ReadOnly, Group: GroupSet, Keys: oneKey("RO access"), Since: "1.0.0",
		Complexity: "O(n), n being the size of the set", Summary: "Returns all members of a set.", Syntax: "key",
		run: func(c *call) error {
			return c.tx.Set(c.key(1)).Visit(c.out.Set, func(member []byte) bool {
				c.out.Bulk(member)
				return !c.out.Exceeded()
			})
		},
	},
	{
		Name: "spop", Arity: -2, Flags: Write | Fast, Group: GroupSet, Keys: oneKey("RW access delete"), Since: "1.0.0",
		Complexity: "O(1) a member", Summary: "Removes and returns members chosen at random.", Syntax: "key [count]", run: spopCommand,
	},
	{
		Name: "srandmember", Arity: -2, Flags: ReadOnly, Group: GroupSet, Keys: oneKey("RO access"), Since: "1.0.0",
		Complexity: "O(1) a member", Summary: "Returns members chosen at random.", Syntax: "key [count]", run: srandmemberCommand,
	},
	{
		Name: "sscan", Arity: -3, Flags: ReadOnly, Group: GroupSet, Keys: oneKey("RO access"), Since: "2.8.0",
		Complexity: "O(1) a call, O(n) for the whole set", Summary: "Returns some members of a set and where to go on.",
		Syntax: "key cursor [MATCH pattern] [COUNT count]", run: sscanCommand,
	},
	{
		Name: "smove", Arity: 4, Flags: Write | Fast, Group: GroupSet, Keys: sourceAndDestination(), Since: "1.0.0", Complexity: "O(1)",
		Summary: "Moves a member from one set to another and says whether it was there.", Syntax: "source destination member",
		run: func(c *call) error { return c.flag(c.tx.Set(c.key(1)).Move(c.key(2), c.key(3))) },
	},
}

var setCombineCommands = []*Command{
	{
		Name: "sunion", Arity: -2, Flags: ReadOnly, Group: GroupSet, Keys: manyKeys("RO access"), Since: "1.0.0",
		Complexity: "O(n), n being the size of all sets", Summary: "Returns the members of any of several sets.", Syntax: "key [key ...]",
		run: func(c *call) error { return combine(c, db.UnionOf) },
	},
	{
		Name: "sinter", Arity: -2, Flags: ReadOnly, Group: GroupSet, Keys: manyKeys("RO access"), Since: "1.0.0",
		Complexity: "O(n*m), n being the size of the smallest set and m the number of sets", Summary: "Returns the members that all of several sets have.",
		Syntax: "key [key ...]", run: func(c *call) error { return combine(c, db.InterOf) },
	},
	{
		Name: "sdiff", Arity: -2, Flags: ReadOnly, Group: GroupSet, Keys: manyKeys("RO access"), Since: "1.0.0",
		Complexity: "O(n), n being the size of all sets", Summary: "Returns the members of the first set that no other set has.",
		Syntax: "key [key ...]", run: func(c *call) error { return combine(c, db.DiffOf) },
	},
	{
		Name: "sunionstore", Arity: -3, Flags: Write | DenyOOM, Group: GroupSet, Keys: destinationAnd(keysFrom2("RO access")), Since: "1.0.0",
		Complexity: "O(n), n being the size of all sets", Summary: "Stores the members of any of several sets and returns how many they are.",
		Syntax: "destination key [key ...]", run: func(c *call) error { return combineStore(c, db.UnionOf) },
	},
	{
		Name: "sinterstore", Arity: -3, Flags: Write | DenyOOM, Group: GroupSet, Since: "1.0.0",
		Keys:       []Keys{{Use: "RW update", First: 1, Step: 1}, keysFrom2("RO access")}, // as Redis has it
		Complexity: "O(n*m), n being the size of the smallest set and m the number of sets",
		Summary:    "Stores the members that all of several sets have and returns how many they are.",
		Syntax:     "destination key [key ...]", run: func(c *call) error { return combineStore(c, db.InterOf) },
	},
	{
		Name: "sdiffstore", Arity: -3, Flags: Write | DenyOOM, Group: GroupSet, Keys: destinationAnd(keysFrom2("RO access")), Since: "1.0.0",
		Complexity: "O(n), n being the size of all sets",
		Summary:    "Stores the members of the first set that no other set has and returns how many they are.",
		Syntax:     "destination key [key ...]", run: func(c *call) error { return combineStore(c, db.DiffOf) },
	},
	{
		Name: "sintercard", Arity: -3, Flags: ReadOnly | MovableKeys, Group: GroupSet, Keys: countedKeys("RO access"), Since: "7.0.0",
		Complexity: "O(n*m), n being the size of the smallest set and m the number of sets",
		Summary:    "Returns how many members all of several sets have.", Syntax: "numkeys key [key ...] [LIMIT limit]", run: sintercardCommand,
	},
}

func smismemberCommand(c *call) error {
	set := c.tx.Set(c.key(1))
	c.out.Array(len(c.args) - 2)
	for i := 2; i < len(c.args); i++ {
		has, err := set.Has(c.key(i))
		if err := c.flag(has, err); err != nil {
			return err
		}
	}
	return nil
}

func spopCommand(c *call) error {
	set := c.tx.Set(c.key(1))
	switch len(c.args) {
	case 2:
		members, err := set.Pop(1)
		if err != nil {
			return err
		}
		if len(members) == 0 {
			c.out.Null()
		} else {
			c.out.BulkString(members[0])
		}
		return nil
	case 3:
	default:
		return errSyntax
	}
	count, err := c.parsePositive(2)
	if err != nil {
		return err
	}
	members, err := set.Pop(count)
	if err != nil {
		return err
	}
	c.out.Set(len(members))
	for _, member := range members {
		c.out.BulkString(member)
	}
	return nil
}

func srandmemberCommand(c *call) error {
	set := c.tx.Set(c.key(1))
	switch len(c.args) {
	case 2:
		members, err := set.Random(1)
		if err != nil {
			return err
		}
		if len(members) == 0 {
			c.out.Null()
		} else {
			c.out.BulkString(members[0])
		}
		return nil
	case 3:
	default:
		return errSyntax
	}
	count, err := c.parseInt(2)
	if err != nil {
		return err
	}
	if count == math.MinInt64 {
		return errBetween(-math.MaxInt64, math.MaxInt64)
	}
	// A negative count may be any number: the limit of a reply stops it long before memory does.
	return set.VisitRandom(int(count), c.out.Array, func(member []byte) bool {
		c.out.Bulk(member)
		return !c.out.Exceeded()
	})
}

func sscanCommand(c *call) error {
	cursor, o, done, err := c.scanCursor(db.TypeSet, nil)
	if err != nil || done {
		return err
	}
	members, next, err := c.tx.Set(c.key(1)).Scan(cursor, o.ScanOptions)
	if err != nil {
		return err
	}
	members = dropUnmatched(o, members, func(member string) string { return member })
	c.scanHeader(next, len(members))
	for _, member := range members {
		c.out.BulkString(member)
	}
	return nil
}

func combine(c *call, op db.SetOp) error {
	mark, n := c.out.Begin(), 0
	err := c.tx.Set(c.key(1)).VisitCombined(op, c.strings(2), func(member []byte) bool {
		c.out.Bulk(member)
		n++
		return !c.out.Exceeded()
	})
	c.out.EndSet(mark, n)
	return err
}

func combineStore(c *call, op db.SetOp) error {
	return c.int(c.tx.Set(c.key(1)).PutCombined(op, c.strings(2)...))
}

func sintercardCommand(c *call) error {
	n, err := c.parseLeast(1, 1, errNumkeys)
	if err != nil {
		return err
	}
	if n > int64(len(c.args)-2) {
		return replyError("ERR Number of keys can't be greater than number of args")
	}
	limit, err := c.parseLimit(2 + int(n))
	if err != nil {
		return err
	}
	return c.int(c.tx.Set(c.key(2)).InterLen(limit, stringsOf(c.args[3:2+n])...))
}

// parseLimit reads the LIMIT of SINTERCARD and ZINTERCARD from argument i on, 0 if there is none.
func (c *call) parseLimit(i int) (limit int, err error) {
	for ; i < len(c.args); i += 2 {
		if !c.is(i, "limit") || i+1 == len(c.args) {
			return 0, errSyntax
		}
		n, err := c.parseLeast(i+1, 0, errLimitNegative)
		if err != nil {
			return 0, err
		}
		limit = int(min(n, math.MaxInt32))
	}
	return limit, nil
}
