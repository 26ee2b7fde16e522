package server

import (
	"errors"
	"math"

	"github.com/stavedb/stave/db"
)

var listCommands = []*Command{
	{
		Name: "lpush", Arity: -3, Flags: Write | DenyOOM | Fast, Group: GroupList, Keys: oneKey("RW insert"), Since: "1.0.0",
		Complexity: "O(1) an element", Summary: "Puts elements in front of a list and returns its length.", Syntax: "key element [element ...]",
		run: func(c *call) error { return c.int(c.tx.List(c.key(1)).PushFront(c.args[2:]...)) },
	},
	{
		Name: "rpush", Arity: -3, Flags: Write | DenyOOM | Fast, Group: GroupList, Keys: oneKey("RW insert"), Since: "1.0.0",
		Complexity: "O(1) an element", Summary: "Puts elements at the end of a list and returns its length.", Syntax: "key element [element ...]",
		run: func(c *call) error { return c.int(c.tx.List(c.key(1)).PushBack(c.args[2:]...)) },
	},
	{
		Name: "lpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Group: GroupList, Keys: oneKey("RW insert"), Since: "2.2.0",
		Complexity: "O(1) an element", Summary: "Puts elements in front of a list, if it exists.", Syntax: "key element [element ...]",
		run: func(c *call) error { return c.int(c.tx.List(c.key(1)).PushFrontIfPresent(c.args[2:]...)) },
	},
	{
		Name: "rpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Group: GroupList, Keys: oneKey("RW insert"), Since: "2.2.0",
		Complexity: "O(1) an element", Summary: "Puts elements at the end of a list, if it exists.", Syntax: "key element [element ...]",
		run: func(c *call) error { return c.int(c.tx.List(c.key(1)).PushBackIfPresent(c.args[2:]...)) },
	},
	{
		Name: "lpop", Arity: -2, Flags: Write | Fast, Group: GroupList, Keys: oneKey("RW access delete"), Since: "1.0.0",
		Complexity: "O(1) an element", Summary: "Removes and returns elements from the front of a list.", Syntax: "key [count]",
		run: func(c *call) error { return pop(c, db.List.PopFront, db.List.PopFrontN) },
	},
	{
		Name: "rpop", Arity: -2, Flags: Write | Fast, Group: GroupList, Keys: oneKey("RW access delete"), Since: "1.0.0",
		Complexity: "O(1) an element", Summary: "Removes and returns elements from the end of a list.", Syntax: "key [count]",
		run: func(c *call) error { return pop(c, db.List.PopBack, db.List.PopBackN) },
	},
	{
		Name: "llen", Arity: 2, Flags: ReadOnly | Fast, Group: GroupList, Keys: oneKey("RO"), Since: "1.0.0", Complexity: "O(1)",
		Summary: "Returns the length of a list.", Syntax: "key", run: func(c *call) error { return c.int(c.tx.List(c.key(1)).Len()) },
	},
	{
		Name: "lrange", Arity: 4, Flags: ReadOnly, Group: GroupList, Keys: oneKey("RO access"), Since: "1.0.0",
		Complexity: "O(n), n being the number of elements returned", Summary: "Returns a range of the elements of a list.",
		Syntax: "key start stop", run: lrangeCommand,
	},
	{
		Name: "lindex", Arity: 3, Flags: ReadOnly, Group: GroupList, Keys: oneKey("RO access"), Since: "1.0.0", Complexity: "O(1)",
		Summary: "Returns the element at a position of a list.", Syntax: "key index", run: lindexCommand,
	},
	{
		Name: "lset", Arity: 4, Flags: Write | DenyOOM, Group: GroupList, Keys: oneKey("RW update"), Since: "1.0.0", Complexity: "O(1)",
		Summary: "Replaces the element at a position of a list.", Syntax: "key index element", run: lsetCommand,
	},
	{
		Name: "ltrim", Arity: 4, Flags: Write, Group: GroupList, Keys: oneKey("RW delete"), Since: "1.0.0",
		Complexity: "O(1) a removed element", Summary: "Removes all elements of a list but a range.", Syntax: "key start stop", run: ltrimCommand,
	},
	{
		Name: "linsert", Arity: 5, Flags: Write | DenyOOM, Group: GroupList, Keys: oneKey("RW insert"), Since: "2.2.0",
		Complexity: "O(n), n being the length of the list", Summary: "Puts an element before or after another one.",
		Syntax: "key <BEFORE | AFTER> pivot element", run: linsertCommand,
	},
	{
		Name: "lrem", Arity: 4, Flags: Write, Group: GroupList, Keys: oneKey("RW delete"), Since: "1.0.0",
		Complexity: "O(n), n being the length of the list", Summary: "Removes elements that equal a value and returns how many.",
		Syntax: "key count element", run: lremCommand,
	},
	{
		Name: "lpos", Arity: -3, Flags: ReadOnly, Group: GroupList, Keys: oneKey("RO access"), Since: "6.0.6",
		Complexity: "O(n), n being the length of the list", Summary: "Returns the positions of elements that equal a value.",
		Syntax: "key element [RANK rank] [COUNT num-matches] [MAXLEN len]", run: lposCommand,
	},
	{
		Name: "lmove", Arity: 5, Flags: Write | DenyOOM, Group: GroupList, Keys: sourceAndDestination(), Since: "6.2.0", Complexity: "O(1)",
		Summary: "Moves an element from an end of one list to an end of another, and returns it.",
		Syntax:  "source destination <LEFT | RIGHT> <LEFT | RIGHT>", run: lmoveCommand,
	},
	{
		Name: "rpoplpush", Arity: 3, Flags: Write | DenyOOM, Group: GroupList, Keys: sourceAndDestination(), Since: "1.2.0", Complexity: "O(1)",
		Summary: "Moves the last element of a list to the front of another, and returns it.", Syntax: "source destination",
		run: func(c *call) error { return c.move(db.Back, db.Front) },
	},
	{
		Name: "lmpop", Arity: -4, Flags: Write | MovableKeys, Group: GroupList, Keys: countedKeys("RW access delete"), Since: "7.0.0",
		Complexity: "O(n+m), n being the number of keys and m that of the elements returned",
		Summary:    "Removes and returns elements of the first list that exists.",
		Syntax:     "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]", run: lmpopCommand,
	},
}

// pop is LPOP and RPOP: one element, or with a count an array of them.
func pop(c *call, single func(db.List) ([]byte, error), several func(db.List, int) ([][]byte, error)) error {
	list := c.tx.List(c.key(1))
	switch len(c.args) {
	case 2:
		return c.bulk(single(list))
	case 3:
	default:
		return errArity(c.command.Name)
	}
	count, err := c.parsePositive(2)
	if err != nil {
		return err
	}
	values, err := several(list, count)
	if errors.Is(err, db.ErrNotFound) {
		c.out.NullArray()
		return nil
	}
	if err != nil {
		return err
	}
	c.bulks(values)
	return nil
}

// parseRange reads two integers, start and stop.
func (c *call) parseRange(i int) (start, stop int64, err error) {
	if start, err = c.parseInt(i); err != nil {
		return 0, 0, err
	}
	stop, err = c.parseInt(i + 1)
	return start, stop, err
}

func lrangeCommand(c *call) error {
	start, stop, err := c.parseRange(2)
	if err != nil {
		return err
	}
	return c.tx.List(c.key(1)).Visit(start, stop, c.out.Array, func(value []byte) bool {
		c.out.Bulk(value)
		return !c.out.Exceeded()
	})
}

// lindexCommand looks at the key before it looks at the position, as Redis does.
func lindexCommand(c *call) error {
	list := c.tx.List(c.key(1))
	n, err := list.Len()
	if err != nil {
		return err
	}
	if n == 0 {
		c.out.Null()
		return nil
	}
	position, err := c.parseInt(2)
	if err != nil {
		return err
	}
	return c.bulk(list.At(position))
}

func lsetCommand(c *call) error {
	list := c.tx.List(c.key(1))
	n, err := list.Len()
	if err != nil {
		return err
	}
	if n == 0 {
		return errNoKey
	}
	position, err := c.parseInt(2)
	if err != nil {
		return err
	}
	if err := list.Set(position, c.arg(3)); err != nil {
		return err
	}
	return c.ok()
}

func ltrimCommand(c *call) error {
	start, stop, err := c.parseRange(2)
	if err != nil {
		return err
	}
	if err := c.tx.List(c.key(1)).Trim(start, stop); err != nil {
		return err
	}
	return c.ok()
}

func linsertCommand(c *call) error {
	list := c.tx.List(c.key(1))
	switch {
	case c.is(2, "before"):
		return c.int(list.InsertBefore(c.arg(3), c.arg(4)))
	case c.is(2, "after"):
		return c.int(list.InsertAfter(c.arg(3), c.arg(4)))
	}
	return errSyntax
}

func lremCommand(c *call) error {
	count, err := c.parseInt(2)
	if err != nil {
		return err
	}
	if count == math.MinInt64 {
		return errBetween(-math.MaxInt64, math.MaxInt64)
	}
	return c.int(c.tx.List(c.key(1)).Remove(count, c.arg(3)))
}

// lposCommand is LPOS. Without COUNT it replies with one position or a null, with COUNT with an array.
func lposCommand(c *call) error {
	o := db.PositionOptions{Rank: 1}
	single := true
	for i := 3; i < len(c.args); i += 2 {
		if i+1 == len(c.args) {
			return errSyntax
		}
		var err error
		switch {
		case c.is(i, "rank"):
			o.Rank, err = c.parseRank(i + 1)
		case c.is(i, "count"):
			single = false
			o.Count, err = c.parseLeast(i+1, 0, "ERR COUNT can't be negative")
		case c.is(i, "maxlen"):
			o.MaxLen, err = c.parseLeast(i+1, 0, "ERR MAXLEN can't be negative")
		default:
			return errSyntax
		}
		if err != nil {
			return err
		}
	}
	if single {
		o.Count = 1
	}
	positions, err := c.tx.List(c.key(1)).Positions(c.arg(2), o)
	switch {
	case err != nil:
		return err
	case !single:
		c.out.Array(len(positions))
		for _, position := range positions {
			c.out.Int(position)
		}
	case len(positions) == 0:
		c.out.Null()
	default:
		c.out.Int(positions[0])
	}
	return nil
}

func (c *call) parseRank(i int) (int64, error) {
	rank, err := c.parseInt(i)
	switch {
	case err != nil:
		return 0, err
	case rank == math.MinInt64:
		return 0, errBetween(-math.MaxInt64, math.MaxInt64)
	case rank == 0:
		return 0, replyError("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... " +
			"or use negative to start from the end of the list")
	}
	return rank, nil
}

// parseEnd reads LEFT or RIGHT.
func (c *call) parseEnd(i int) (db.End, error) {
	switch {
	case c.is(i, "left"):
		return db.Front, nil
	case c.is(i, "right"):
		return db.Back, nil
	}
	return 0, errSyntax
}

// parseEnds reads the two words of LMOVE and BLMOVE.
func (c *call) parseEnds(i int) (from, into db.End, err error) {
	if from, err = c.parseEnd(i); err == nil {
		into, err = c.parseEnd(i + 1)
	}
	return from, into, err
}

func lmoveCommand(c *call) error {
	from, into, err := c.parseEnds(3)
	if err != nil {
		return err
	}
	return c.move(from, into)
}

func (c *call) move(from, into db.End) error {
	return c.bulk(c.tx.List(c.key(1)).Move(c.key(2), from, into))
}

// multiPop is what LMPOP, ZMPOP and their blocking forms have in common: keys, an end and a count.
type multiPop struct {
	keys     []string
	fromBack bool // RIGHT, MAX
	count    int
}

// parseMultiPop reads the arguments from the number of keys on; front and back are the words for the two ends.
func (c *call) parseMultiPop(i int, front, back string) (p multiPop, err error) {
	var next int
	if p.keys, next, err = c.parseKeys(i); err != nil {
		return p, err
	}
	switch {
	case next == len(c.args) || !c.is(next, front) && !c.is(next, back):
		return p, errSyntax
	case len(c.args) == next+1:
		p.count = 1
	case len(c.args) >= next+3 && c.is(next+1, "count"):
		n, err := c.parseLeast(next+2, 1, errCount)
		if err != nil {
			return p, err
		}
		if len(c.args) > next+3 {
			return p, errSyntax
		}
		p.count = int(min(n, math.MaxInt32))
	default:
		return p, errSyntax
	}
	p.fromBack = c.is(next, back)
	return p, nil
}

// end is the end of a list that the pop is about.
func (p *multiPop) end() db.End {
	if p.fromBack {
		return db.Back
	}
	return db.Front
}

func lmpopCommand(c *call) error {
	p, err := c.parseMultiPop(1, "left", "right")
	if err != nil {
		return err
	}
	key, values, err := c.tx.Keyspace().PopFirst(p.end(), p.count, p.keys...)
	if errors.Is(err, db.ErrNotFound) {
		c.out.NullArray()
		return nil
	}
	if err != nil {
		return err
	}
	c.poppedElements(key, values)
	return nil
}

// poppedElements is the reply of LMPOP: the key and an array of elements.
func (c *call) poppedElements(key string, values [][]byte) {
	c.out.Array(2)
	c.out.BulkString(key)
	c.bulks(values)
}

// bulks replies with an array of strings.
func (c *call) bulks(values [][]byte) {
	c.out.Array(len(values))
	for _, value := range values {
		c.out.Bulk(value)
	}
}

// bulksOrNulls replies with an array of strings, those that are nil being nulls.
func (c *call) bulksOrNulls(values [][]byte, err error) error {
	if err != nil {
		return err
	}
	c.out.Array(len(values))
	for _, value := range values {
		if value == nil {
			c.out.Null()
		} else {
			c.out.Bulk(value)
		}
	}
	return nil
}
