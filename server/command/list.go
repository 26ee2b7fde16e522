package command

import (
	"errors"
	"math"

	"github.com/stavedb/stave/db"
)

// LPUSH to LMPOP; blocking.go has the commands that wait. An element has an index, so pushes and pops are
// O(1), and so is LINDEX, where Redis walks its list; in a list that LINSERT or LREM has changed in the middle it is
// O(log n). Both write a record for each element that they add or remove.
//
// A pop that empties the list deletes the key, and a push into a key that does not exist makes it.
// Pushed elements are offered to blocked clients before the transaction ends, first come, first
// served: LPUSH replies with the length that the list had before they were served, as Redis does.

// listCommands work on lists. A list without elements does not exist. Negative positions count from
// the end.
var listCommands = InGroup(GroupList, []*Command{
	{Name: "lpush", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW insert"),
		Run: func(c *Call) error { return c.Int(c.Tx.List(c.Key(1)).PushFront(c.Args[2:]...)) }},
	{Name: "rpush", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW insert"),
		Run: func(c *Call) error { return c.Int(c.Tx.List(c.Key(1)).PushBack(c.Args[2:]...)) }},
	{Name: "lpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW insert"),
		Run: func(c *Call) error { return c.pushx(db.Front) }},
	{Name: "rpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW insert"),
		Run: func(c *Call) error { return c.pushx(db.Back) }},
	{Name: "lpop", Arity: -2, Count: 2, Flags: Write | Fast, Keys: OneKey("RW access delete"),
		Run: func(c *Call) error { return pop(c, db.List.PopFront, db.List.PopFrontN) }},
	{Name: "rpop", Arity: -2, Count: 2, Flags: Write | Fast, Keys: OneKey("RW access delete"),
		Run: func(c *Call) error { return pop(c, db.List.PopBack, db.List.PopBackN) }},
	{Name: "llen", Arity: 2, Flags: ReadOnly | Fast, Keys: OneKey("RO"),
		Run: func(c *Call) error { return c.Int(c.Tx.List(c.Key(1)).Len()) }},
	{Name: "lrange", Arity: 4, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"), Run: lrangeCommand},
	{Name: "lindex", Arity: 3, Flags: ReadOnly, Work: BySize, Keys: OneKey("RO access"), Run: lindexCommand},
	{Name: "lset", Arity: 4, Flags: Write | DenyOOM, Work: BySize, Keys: OneKey("RW update"), Run: lsetCommand},
	{Name: "ltrim", Arity: 4, Flags: Write, Work: InSteps, Keys: OneKey("RW delete"), Run: ltrimCommand},
	{Name: "linsert", Arity: 5, Flags: Write | DenyOOM, Work: InSteps, Keys: OneKey("RW insert"), Run: linsertCommand},
	{Name: "lrem", Arity: 4, Flags: Write, Work: InSteps, Keys: OneKey("RW delete"), Run: withInt(2, lremCommand)},
	{Name: "lpos", Arity: -3, Flags: ReadOnly, Work: InSteps, Keys: OneKey("RO access"), Run: lposCommand},
	{Name: "lmove", Arity: 5, Flags: Write | DenyOOM, Work: BySize, Keys: sourceAndDestination(), Run: lmoveCommand},
	{Name: "lmovem", Arity: -5, Count: 6, Flags: Write | DenyOOM, Work: BySize, Keys: sourceAndDestination(), Run: lmovemCommand},
	{Name: "rpoplpush", Arity: 3, Flags: Write | DenyOOM, Work: BySize, Keys: sourceAndDestination(),
		Run: func(c *Call) error { return c.move(db.Back, db.Front) }},
	{Name: "lmpop", Arity: -4, Flags: Write | MovableKeys, Keys: countedKeys("RW access delete"), Run: lmpopCommand},
})

// pop is LPOP and RPOP: one element, or with a count an array of them. With a count the reply is an
// array, also of one; a key that does not exist is a null array then, and a null without. The count
// is read before the key: LPOP k -1 is an error whatever k holds. A count of 0 takes nothing, and
// an empty array says that the list exists.
func pop(c *Call, single func(db.List) ([]byte, error), several func(db.List, int) ([][]byte, error)) error {
	list := c.Tx.List(c.Key(1))
	switch len(c.Args) {
	case 2:
		return c.bulk(single(list))
	case 3:
	default:
		return ArityError(c.Command.Name)
	}
	count, err := c.Args.parseCount(2)
	if err != nil {
		return err
	}
	values, err := several(list, count)
	if err != nil {
		return orElse(err, c.Out.NullArray)
	}
	c.bulks(values)
	return nil
}

// lrangeCommand is LRANGE. Ends beyond the list are no error; the reply is what there is. Positions
// are clipped to the list, so 0 -1 is all of it. The number of elements comes before the first; the
// elements are read from disk in order, one at a time, into the reply.
func lrangeCommand(c *Call) error {
	start, stop, err := c.Args.parseRange(2)
	if err != nil {
		return err
	}
	return c.Tx.List(c.Key(1)).Visit(start, stop, c.Out.Array, c.eachBulk)
}

// lindexCommand checks the key before the position, as Redis does.
func lindexCommand(c *Call) error {
	list := c.Tx.List(c.Key(1))
	n, err := list.Len()
	if err != nil {
		return err
	}
	if n == 0 {
		return c.Reply(nil)
	}
	position, err := c.Args.ParseInt(2)
	if err != nil {
		return err
	}
	return c.bulk(list.At(position))
}

// lsetCommand is LSET: the key is checked before the index, and both have errors of their own. A
// position beyond the list is not clipped here but refused.
func lsetCommand(c *Call) error {
	list := c.Tx.List(c.Key(1))
	n, err := list.Len()
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrNoKey
	}
	position, err := c.Args.ParseInt(2)
	if err != nil {
		return err
	}
	return c.Done(list.Set(position, c.Arg(3)))
}

// ltrimCommand is LTRIM: an empty range deletes the list. Elements outside the range are deleted,
// with one record at each end, the others are not touched.
func ltrimCommand(c *Call) error {
	start, stop, err := c.Args.parseRange(2)
	if err != nil {
		return err
	}
	return c.Done(c.Tx.List(c.Key(1)).Trim(start, stop))
}

// linsertCommand is LINSERT: -1 if the pivot is not there, 0 if the list is not. The first element
// that equals the pivot counts, from the front. A word other than BEFORE and AFTER is a syntax
// error before the key is read.
func linsertCommand(c *Call) error {
	list := c.Tx.List(c.Key(1))
	switch {
	case c.Args.Is(2, "before"):
		return c.Int(list.InsertBefore(c.Arg(3), c.Arg(4)))
	case c.Args.Is(2, "after"):
		return c.Int(list.InsertAfter(c.Arg(3), c.Arg(4)))
	}
	return ErrSyntax
}

// lremCommand is LREM: a negative count removes from the back, 0 removes all. The lowest integer is
// refused, for it has no opposite. With the last element the key goes.
func lremCommand(c *Call, count int64) error {
	if count == math.MinInt64 {
		return errBetween(-math.MaxInt64, math.MaxInt64)
	}
	return c.Int(c.Tx.List(c.Key(1)).Remove(count, c.Arg(3)))
}

// lposCommand is LPOS. Without COUNT it replies with one position or a null, with COUNT with an
// array. COUNT 0 is all matches, MAXLEN 0 all elements. A negative RANK searches from the back and
// replies with positions from the front. The words may stand in any order and more than once.
func lposCommand(c *Call) error {
	o := db.PositionOptions{Rank: 1}
	single := true
	for i := 3; i < len(c.Args); i += 2 {
		if i+1 == len(c.Args) {
			return ErrSyntax
		}
		var err error
		switch {
		case c.Args.Is(i, "rank"):
			o.Rank, err = c.Args.parseRank(i + 1)
		case c.Args.Is(i, "count"):
			single = false
			o.Count, err = c.Args.parseLeast(i+1, 0, "ERR COUNT can't be negative")
		case c.Args.Is(i, "maxlen"):
			o.MaxLen, err = c.Args.parseLeast(i+1, 0, "ERR MAXLEN can't be negative")
		default:
			return ErrSyntax
		}
		if err != nil {
			return err
		}
	}
	if single {
		o.Count = 1
	}
	positions, err := c.Tx.List(c.Key(1)).Positions(c.Arg(2), o)
	switch {
	case err != nil:
		return err
	case !single:
		c.Out.Array(len(positions))
		for _, position := range positions {
			c.Out.Int(position)
		}
	case len(positions) == 0:
		c.Out.Null()
	default:
		c.Out.Int(positions[0])
	}
	return nil
}

// parseRank reads the RANK of LPOS: 1 is the first match, -1 the last one. 0 is refused, and so is
// the one number without an opposite.
func (a Args) parseRank(i int) (int64, error) {
	rank, err := a.parseSigned(i)
	switch {
	case err != nil:
		return 0, err
	case rank == 0:
		return 0, Error("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... " +
			"or use negative to start from the end of the list")
	}
	return rank, nil
}

// ends are the words for the ends of a list.
var ends = words[db.End]{{"left", db.Front}, {"right", db.Back}}

// parseEnds reads the two words of LMOVE and BLMOVE.
func (a Args) parseEnds(i int) (from, into db.End, err error) {
	from, ok := ends.find(a[i])
	into, also := ends.find(a[i+1])
	if !ok || !also {
		return 0, 0, ErrSyntax
	}
	return from, into, nil
}

// lmoveCommand is LMOVE. Source and destination may be the same key: that rotates the list. Both
// are locked, and the move is one commit.
func lmoveCommand(c *Call) error {
	from, into, err := c.Args.parseEnds(3)
	if err != nil {
		return err
	}
	return c.move(from, into)
}

// lmovemCommand is LMOVEM: an array of the elements in the order in which they stand then, or a null array.
func lmovemCommand(c *Call) error {
	from, into, err := c.Args.parseEnds(3)
	if err != nil {
		return err
	}
	m := db.ListMove{Count: 1}
	if len(c.Args) > 5 {
		m.Exactly = c.Args.Is(5, "exactly")
		if len(c.Args) != 8 || !m.Exactly && !c.Args.Is(5, "count") {
			return ErrSyntax
		}
		n, err := c.Args.parseLeast(6, 1, errCount)
		if err != nil {
			return err
		}
		m.Count, m.OneByOne = clampInt(n), c.Args.Is(7, "obo")
		if !m.OneByOne && !c.Args.Is(7, "bulk") {
			return ErrSyntax
		}
	}
	values, err := c.Tx.List(c.Key(1)).MoveMany(c.Key(2), from, into, m)
	switch {
	case errors.Is(err, db.ErrNotFound):
		c.Out.NullArray()
		return nil
	case err != nil:
		return err
	}
	c.bulks(values)
	return nil
}

// move is LMOVE and RPOPLPUSH: null if there is nothing to move. A destination of another type is
// refused before the element leaves its list.
func (c *Call) move(from, into db.End) error {
	return c.bulk(c.Tx.List(c.Key(1)).Move(c.Key(2), from, into))
}

// lmpopCommand is LMPOP: a null array if none of the lists exists. The keys after the first list
// that exists are not read, also not their types.
func lmpopCommand(c *Call) error {
	p, err := c.Args.parseMultiPop(1, "left", "right")
	if err != nil {
		return err
	}
	key, values, err := c.Tx.Keyspace().PopFirst(p.end(), p.count, p.keys...)
	if err != nil {
		return orElse(err, c.Out.NullArray)
	}
	c.poppedElements(key, values)
	return nil
}

// poppedElements is the reply of LMPOP: the key and an array of elements.
func (c *Call) poppedElements(key string, values [][]byte) {
	c.Out.Array(2)
	c.Out.BulkString(key)
	c.bulks(values)
}

// pushx is LPUSHX and RPUSHX: 0 if there is no list.
func (c *Call) pushx(end db.End) error {
	n, err := c.Tx.List(c.Key(1)).PushWith(end, c.Args[2:], db.IfPresent)
	if errors.Is(err, db.ErrNotFound) {
		err = nil
	}
	return c.Int(n, err)
}
