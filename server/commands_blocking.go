package server

import (
	"errors"
	"math"
	"time"

	"github.com/stavedb/stave/db"
)

// beforeTimeout is the run of keys of commands whose last argument is a timeout.
func beforeTimeout() []Keys { return []Keys{{Use: "RW access delete", First: 1, Last: -2, Step: 1}} }

var blockingCommands = []*Command{
	{
		Name: "blpop", Arity: -3, Flags: Write | NoScript | Blocking, Group: GroupList, Keys: beforeTimeout(), Since: "2.0.0",
		Complexity: "O(n), n being the number of keys", Summary: "Removes and returns the first element of a list, and waits for one.",
		Syntax: "key [key ...] timeout", run: func(c *call) error { return blockingPop(c, db.Front) },
	},
	{
		Name: "brpop", Arity: -3, Flags: Write | NoScript | Blocking, Group: GroupList, Keys: beforeTimeout(), Since: "2.0.0",
		Complexity: "O(n), n being the number of keys", Summary: "Removes and returns the last element of a list, and waits for one.",
		Syntax: "key [key ...] timeout", run: func(c *call) error { return blockingPop(c, db.Back) },
	},
	{
		Name: "blmove", Arity: 6, Flags: Write | DenyOOM | NoScript | Blocking, Group: GroupList, Keys: sourceAndDestination(), Since: "6.2.0", Complexity: "O(1)",
		Summary: "Moves an element from one list to another, and waits for one.",
		Syntax:  "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout", run: blmoveCommand,
	},
	{
		Name: "brpoplpush", Arity: 4, Flags: Write | DenyOOM | NoScript | Blocking, Group: GroupList, Keys: sourceAndDestination(), Since: "2.2.0", Complexity: "O(1)",
		Summary: "Moves the last element of a list to the front of another, and waits for one.", Syntax: "source destination timeout",
		run: func(c *call) error { return blockingMove(c, db.Back, db.Front, 3) },
	},
	{
		Name: "blmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, Group: GroupList, Since: "7.0.0",
		Keys:       []Keys{{Use: "RW access delete", First: 2, Counted: true}},
		Complexity: "O(n+m), n being the number of keys and m that of the elements returned",
		Summary:    "Removes and returns elements of the first list that exists, and waits for one.",
		Syntax:     "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]", run: blmpopCommand,
	},
	{
		Name: "bzpopmin", Arity: -3, Flags: Write | NoScript | Fast | Blocking, Group: GroupSortedSet, Keys: beforeTimeout(), Since: "5.0.0",
		Complexity: "O(log n)", Summary: "Removes and returns the member with the lowest score, and waits for one.",
		Syntax: "key [key ...] timeout", run: func(c *call) error { return blockingPopScored(c, false) },
	},
	{
		Name: "bzpopmax", Arity: -3, Flags: Write | NoScript | Fast | Blocking, Group: GroupSortedSet, Keys: beforeTimeout(), Since: "5.0.0",
		Complexity: "O(log n)", Summary: "Removes and returns the member with the highest score, and waits for one.",
		Syntax: "key [key ...] timeout", run: func(c *call) error { return blockingPopScored(c, true) },
	},
	{
		Name: "bzmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, Group: GroupSortedSet, Since: "7.0.0",
		Keys:       []Keys{{Use: "RW access delete", First: 2, Counted: true}},
		Complexity: "O(k)+O(m*log n), k being the number of keys and m that of the members returned",
		Summary:    "Removes and returns members of the first sorted set that exists, and waits for one.",
		Syntax:     "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]", run: bzmpopCommand,
	},
}

// The two forms of "there is nothing".
func noArray(c *call)  { c.out.NullArray() }
func noString(c *call) { c.out.Null() }

// await does what w says at once and replies, or lets the session wait for it. Within EXEC nothing waits: nothing replies
// that there was nothing.
func (c *call) await(w db.Wait, timeout time.Duration, reply, nothing func(*call)) error {
	err := c.tx.Try(w)
	switch {
	case err == nil:
		reply(c)
		return nil
	case !errors.Is(err, db.ErrNotFound):
		return err
	case c.queued:
		nothing(c)
		return nil
	}
	return c.host.Wait(c, w, timeout, reply)
}

// keysBeforeTimeout reads the arguments of BLPOP and its like.
func (c *call) keysBeforeTimeout() (keys []string, timeout time.Duration, err error) {
	last := len(c.args) - 1
	timeout, err = c.parseTimeout(last)
	return stringsOf(c.args[1:last]), timeout, err
}

func blockingPop(c *call, end db.End) error {
	keys, timeout, err := c.keysBeforeTimeout()
	if err != nil {
		return err
	}
	return c.popLists(keys, end, 1, timeout, func(c *call, key string, values [][]byte) {
		c.out.Array(2)
		c.out.BulkString(key)
		c.out.Bulk(values[0])
	})
}

func blmpopCommand(c *call) error {
	p, err := c.parseMultiPop(2, "left", "right")
	if err != nil {
		return err
	}
	timeout, err := c.parseTimeout(1)
	if err != nil {
		return err
	}
	return c.popLists(p.keys, p.end(), p.count, timeout, (*call).poppedElements)
}

// popLists takes elements off the first of some lists that exists.
func (c *call) popLists(keys []string, end db.End, count int, timeout time.Duration, reply func(*call, string, [][]byte)) error {
	var key string
	var values [][]byte
	w := db.Wait{Keys: keys, Type: db.TypeList, Do: func(tx *db.Tx, from string) (err error) {
		key, values, err = tx.Keyspace().PopFirst(end, count, from)
		return err
	}}
	return c.await(w, timeout, func(c *call) { reply(c, key, values) }, noArray)
}

func blmoveCommand(c *call) error {
	from, into, err := c.parseEnds(3)
	if err != nil {
		return err
	}
	return blockingMove(c, from, into, 5)
}

// blockingMove is BLMOVE and BRPOPLPUSH, whose timeout is argument i.
func blockingMove(c *call, from, into db.End, i int) error {
	timeout, err := c.parseTimeout(i)
	if err != nil {
		return err
	}
	to := c.key(2)
	var value []byte
	w := db.Wait{Keys: []string{c.key(1)}, Type: db.TypeList, Others: []string{to}}
	w.Do = func(tx *db.Tx, key string) (err error) {
		value, err = tx.List(key).Move(to, from, into)
		return err
	}
	return c.await(w, timeout, func(c *call) { c.out.Bulk(value) }, noString)
}

func blockingPopScored(c *call, highest bool) error {
	keys, timeout, err := c.keysBeforeTimeout()
	if err != nil {
		return err
	}
	return c.popSortedSets(keys, highest, 1, timeout, func(c *call, key string, members []db.Scored) {
		c.out.Array(3)
		c.out.BulkString(key)
		c.out.BulkString(members[0].Member)
		c.out.Double(members[0].Score)
	})
}

func bzmpopCommand(c *call) error {
	p, err := c.parseMultiPop(2, "min", "max")
	if err != nil {
		return err
	}
	timeout, err := c.parseTimeout(1)
	if err != nil {
		return err
	}
	return c.popSortedSets(p.keys, p.fromBack, p.count, timeout, (*call).popped)
}

// popSortedSets takes members off the first of some sorted sets that exists.
func (c *call) popSortedSets(keys []string, highest bool, count int, timeout time.Duration, reply func(*call, string, []db.Scored)) error {
	var key string
	var members []db.Scored
	w := db.Wait{Keys: keys, Type: db.TypeSortedSet, Do: func(tx *db.Tx, from string) (err error) {
		key, members, err = tx.Keyspace().PopFirstScored(highest, count, from)
		return err
	}}
	return c.await(w, timeout, func(c *call) { reply(c, key, members) }, noArray)
}

// parseTimeout reads argument i as seconds, 0 for no end. What an int64 of nanoseconds cannot hold, 292 years, is no end either.
func (c *call) parseTimeout(i int) (time.Duration, error) {
	seconds, err := c.parseFloat(i)
	if err != nil {
		return 0, replyError("ERR timeout is not a float or out of range")
	}
	ms := math.Ceil(seconds * 1000)
	switch {
	case ms > float64(math.MaxInt64-time.Now().UnixMilli()):
		return 0, replyError("ERR timeout is out of range")
	case ms < 0:
		return 0, replyError("ERR timeout is negative")
	case ms > float64(math.MaxInt64/int64(time.Millisecond)):
		return 0, nil
	}
	return time.Duration(ms) * time.Millisecond, nil
}
