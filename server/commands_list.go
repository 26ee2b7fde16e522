package server

import (
	"errors"
	"math"

	"github.com/stavedb/stave/db"
)

var listCommands = []*Command{
	{
		Name: "lpush", Arity: -3, Flags: Write | DenyOOM | Fast, Group: GroupList, Keys: one("RW insert"), Since: "1.0.0",
		Complexity: "O(1) an element", Summary: "Puts elements in front of a list and returns its length.", Syntax: "key element [element ...]",
		run: func(c *call) error { return c.int(c.tx.List(c.key(1)).PushFront(c.args[2:]...)) },
	},
	{
		Name: "rpush", Arity: -3, Flags: Write | DenyOOM | Fast, Group: GroupList, Keys: one("RW insert"), Since: "1.0.0",
		Complexity: "O(1) an element", Summary: "Puts elements at the end of a list and returns its length.", Syntax: "key element [element ...]",
		run: func(c *call) error { return c.int(c.tx.List(c.key(1)).PushBack(c.args[2:]...)) },
	},
	{
		Name: "lpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Group: GroupList, Keys: one("RW insert"), Since: "2.2.0",
		Complexity: "O(1) an element", Summary: "Puts elements in front of a list, if it exists.", Syntax: "key element [element ...]",
		run: func(c *call) error { return c.int(c.tx.List(c.key(1)).PushFrontIfPresent(c.args[2:]...)) },
	},
	{
		Name: "rpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Group: GroupList, Keys: one("RW insert"), Since: "2.2.0",
		Complexity: "O(1) an element", Summary: "Puts elements at the end of a list, if it exists.", Syntax: "key element [element ...]",
		run: func(c *call) error { return c.int(c.tx.List(c.key(1)).PushBackIfPresent(c.args[2:]...)) },
	},
	{
		Name: "lpop", Arity: -2, Flags: Write | Fast, Group: GroupList, Keys: one("RW access delete"), Since: "1.0.0",
		Complexity: "O(1) an element", Summary: "Removes and returns elements from the front of a list.", Syntax: "key [count]",
		run: func(c *call) error { return pop(c, db.List.PopFront, db.List.PopFrontN) },
	},
	{
		Name: "rpop", Arity: -2, Flags: Write | Fast, Group: GroupList, Keys: one("RW access delete"), Since: "1.0.0",
		Complexity: "O(1) an element", Summary: "Removes and returns elements from the end of a list.", Syntax: "key [count]",
		run: func(c *call) error { return pop(c, db.List.PopBack, db.List.PopBackN) },
	},
	{
		Name: "llen", Arity: 2, Flags: ReadOnly | Fast, Group: GroupList, Keys: one("RO"), Since: "1.0.0", Complexity: "O(1)",
		Summary: "Returns the length of a list.", Syntax: "key", run: func(c *call) error { return c.int(c.tx.List(c.key(1)).Len()) },
	},
	{
		Name: "lrange", Arity: 4, Flags: ReadOnly, Group: GroupList, Keys: one("RO access"), Since: "1.0.0",
		Complexity: "O(n), n being the number of elements returned", Summary: "Returns a range of the elements of a list.",
		Syntax: "key start stop", run: lrangeCommand,
	},
	{
		Name: "lindex", Arity: 3, Flags: ReadOnly, Group: GroupList, Keys: one("RO access"), Since: "1.0.0", Complexity: "O(1)",
		Summary: "Returns the element at a position of a list.", Syntax: "key index", run: lindexCommand,
	},
	{
		Name: "lset", Arity: 4, Flags: Write | DenyOOM, Group: GroupList, Keys: one("RW update"), Since: "1.0.0", Complexity: "O(1)",
		Summary: "Replaces the element at a position of a list.", Syntax: "key index element", run: lsetCommand,
	},
	{
		Name: "ltrim", Arity: 4, Flags: Write, Group: GroupList, Keys: one("RW delete"), Since: "1.0.0",
		Complexity: "O(1) a removed element", Summary: "Removes all elements of a list but a range.", Syntax: "key start stop", run: ltrimCommand,
	},
	{
		Name: "linsert", Arity: 5, Flags: Write | DenyOOM, Group: GroupList, Keys: one("RW insert"), Since: "2.2.0",
		Complexity: "O(n), n being the length of the list", Summary: "Puts an element before or after another one.",
		Syntax: "key <BEFORE | AFTER> pivot element", run: linsertCommand,
	},
	{
		Name: "lrem", Arity: 4, Flags: Write, Group: GroupList, Keys: one("RW delete"), Since: "1.0.0",
		Complexity: "O(n), n being the length of the list", Summary: "Removes elements that equal a value and returns how many.",
		Syntax: "key count element", run: lremCommand,
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
	c.out.Array(len(values))
	for _, value := range values {
		c.out.Bulk(value)
	}
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
