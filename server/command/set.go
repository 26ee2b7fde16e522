package command

import "github.com/stavedb/stave/db"

// Members are in memory, so no command here reads the disk: an answer takes what its complexity
// says, without a wait for a page. They are kept in the order of a keyed hash of their name:
// SMEMBERS and SSCAN reply in that order, and a random member is one at a random position of it.

// setCommands work on single sets. A set without members does not exist.
var setCommands = InGroup(GroupSet, []*Command{
	{Name: "sadd", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW insert"),
		Run: func(c *Call) error { return c.Int(c.Tx.Set(c.Key(1)).Add(c.Args.Strings(2)...)) }},
	{Name: "srem", Arity: -3, Flags: Write | Fast, Keys: OneKey("RW delete"),
		Run: func(c *Call) error { return c.Int(c.Tx.Set(c.Key(1)).Remove(c.Args.Strings(2)...)) }},
	{Name: "scard", Arity: 2, Flags: ReadOnly | Fast, Keys: OneKey("RO"),
		Run: func(c *Call) error { return c.Int(c.Tx.Set(c.Key(1)).Len()) }},
	{Name: "sismember", Arity: 3, Flags: ReadOnly | Fast, Keys: OneKey("RO"),
		Run: func(c *Call) error { return c.Flag(c.Tx.Set(c.Key(1)).Has(c.Key(2))) }},
	{Name: "smismember", Arity: -3, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: smismemberCommand},
	{Name: "smembers", Arity: 2, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return c.Tx.Set(c.Key(1)).Visit(c.Out.Set, c.eachBulk) }},
	{Name: "spop", Arity: -2, Count: 2, Flags: Write | Fast, Keys: OneKey("RW access delete"), Run: spopCommand},
	{Name: "srandmember", Arity: -2, Flags: ReadOnly, Keys: OneKey("RO access"), Run: srandmemberCommand},
	{Name: "sscan", Arity: -3, Flags: ReadOnly, Keys: OneKey("RO access"), Run: sscanCommand},
	{Name: "smove", Arity: 4, Flags: Write | Fast, Keys: sourceAndDestination(),
		Run: func(c *Call) error { return c.Flag(c.Tx.Set(c.Key(1)).Move(c.Key(2), c.Key(3))) }},
})

// smismemberCommand is SMISMEMBER. A key that does not exist gives zeros.
func smismemberCommand(c *Call) error {
	set := c.Tx.Set(c.Key(1))
	c.Out.Array(len(c.Args) - 2)
	for i := 2; i < len(c.Args); i++ {
		has, err := set.Has(c.Key(i))
		if err := c.Flag(has, err); err != nil {
			return err
		}
	}
	return nil
}

// spopCommand is SPOP: with a count the reply is an array, also of one; without, one member or
// null. The members are chosen and removed in one transaction, so two clients never pop the same
// one. The log has the members that were removed and not the choice: a replay cannot choose others.
// With the last member the key goes.
func spopCommand(c *Call) error {
	set := c.Tx.Set(c.Key(1))
	switch len(c.Args) {
	case 2:
		return c.first(set.Pop(1))
	case 3:
	default:
		return ErrSyntax
	}
	count, err := c.Args.parseCount(2)
	if err != nil {
		return err
	}
	members, err := set.Pop(count)
	if err != nil {
		return err
	}
	return c.Reply(BulkSet(members))
}

// srandmemberCommand is SRANDMEMBER. A positive count gives distinct members, a negative one as
// many as it says, with repetitions. A positive count beyond the set gives the whole set. A key
// that does not exist gives an empty array, or null without a count.
func srandmemberCommand(c *Call) error {
	set := c.Tx.Set(c.Key(1))
	switch len(c.Args) {
	case 2:
		return c.first(set.Random(1))
	case 3:
	default:
		return ErrSyntax
	}
	count, err := c.Args.parseSigned(2)
	if err != nil {
		return err
	}
	// A negative count may be any number: the limit of a reply stops it long before memory does.
	return set.VisitRandom(int(count), c.Out.Array, c.eachBulk)
}

// sscanCommand is SSCAN. A cursor is a place in the order of hashes, so it needs no state and
// survives a restart. A member that is there from the first call to the last is returned exactly
// once.
func sscanCommand(c *Call) error {
	cursor, o, done, err := c.scanCursor(db.TypeSet, nil)
	if err != nil || done {
		return err
	}
	page := scanned(c.Tx.Set(c.Key(1)).Scan(cursor, o.ScanOptions))
	page.name = func(member string) string { return member }
	return page.reply(c, o)
}
