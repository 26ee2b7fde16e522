package command

import (
	"errors"
	"time"

	"github.com/stavedb/stave/db"
)

// A command that finds something to take is an ordinary command. Otherwise db.Wait has its work:
// the keys, the type that one of them must come to hold, and what to do then. The work runs with
// the keys of the writer locked, inside the writer's transaction, so a push and the pop that it
// allows are one commit and no third client sees the element in between.
//
// The closures below therefore only take and remember; the reply is written later, by the session
// that waited, in its own goroutine. Values that they remember must not point into the call:
// Call.Args is the parser's memory and is used again by then.
//
// Clients that wait for one key are served in the order in which they came. One of several keys
// that has another type is an error at once; a key that gets another type while a client waits is
// skipped.

// blockingCommands wait when there is nothing to take. A handler describes what it takes as a
// db.Wait: it is tried at once, and otherwise done by the writer that fills a key, within that
// writer's commit.
var blockingCommands = []*Command{
	{Name: "blpop", Arity: -3, Flags: Write | NoScript | Blocking, Group: GroupList, Keys: beforeTimeout(),
		Run: func(c *Call) error { return blockingPop(c, db.Front) }},
	{Name: "brpop", Arity: -3, Flags: Write | NoScript | Blocking, Group: GroupList, Keys: beforeTimeout(),
		Run: func(c *Call) error { return blockingPop(c, db.Back) }},
	{Name: "blmove", Arity: 6, Flags: Write | DenyOOM | NoScript | Blocking, Group: GroupList, Keys: sourceAndDestination(),
		Run: blmoveCommand},
	{Name: "brpoplpush", Arity: 4, Flags: Write | DenyOOM | NoScript | Blocking, Group: GroupList, Keys: sourceAndDestination(),
		Run: func(c *Call) error { return blockingMove(c, db.Back, db.Front, 3) }},
	{Name: "blmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, Work: Unbounded, Group: GroupList,
		Keys: []Keys{{Use: "RW access delete", First: 2, Counted: true}}, Run: blmpopCommand},
	{Name: "bzpopmin", Arity: -3, Flags: Write | NoScript | Fast | Blocking, Group: GroupSortedSet, Keys: beforeTimeout(),
		Run: func(c *Call) error { return blockingPopScored(c, false) }},
	{Name: "bzpopmax", Arity: -3, Flags: Write | NoScript | Fast | Blocking, Group: GroupSortedSet, Keys: beforeTimeout(),
		Run: func(c *Call) error { return blockingPopScored(c, true) }},
	{Name: "bzmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, Work: Unbounded, Group: GroupSortedSet,
		Keys: []Keys{{Use: "RW access delete", First: 2, Counted: true}}, Run: bzmpopCommand},
}

// Await does what w says at once and replies, or lets the session wait for it. Within EXEC nothing
// waits: nothing replies that there was nothing. The first attempt is made in the command's own
// transaction, and the client is queued in it too: no push can fall in between.
func (c *Call) Await(w db.Wait, timeout time.Duration, reply, nothing func(*Call)) error {
	err := c.Tx.Try(w)
	switch {
	case err == nil:
		reply(c)
		return nil
	case !errors.Is(err, db.ErrNotFound):
		return err
	case c.Queued:
		nothing(c)
		return nil
	}
	return c.Host.Wait(c, w, timeout, reply)
}

// keysBeforeTimeout reads the arguments of BLPOP and its like. The timeout is checked before the
// keys are read, as in Redis.
func (a Args) keysBeforeTimeout() (keys []string, timeout time.Duration, err error) {
	last := len(a) - 1
	timeout, err = a.parseTimeout(last)
	return stringsOf(a[1:last]), timeout, err
}

// blockingPop is BLPOP and BRPOP: the reply names the key, since any of several may be the one.
func blockingPop(c *Call, end db.End) error {
	keys, timeout, err := c.Args.keysBeforeTimeout()
	if err != nil {
		return err
	}
	return c.popLists(keys, end, 1, timeout, func(c *Call, key string, values [][]byte) {
		c.Out.Array(2)
		c.Out.BulkString(key)
		c.Out.Bulk(values[0])
	})
}

// parseBlockingPop reads the arguments of BLMPOP and BZMPOP. The timeout is the first and the last one checked, as in
// Redis.
func (a Args) parseBlockingPop(front, back string) (p multiPop, timeout time.Duration, err error) {
	if p, err = a.parseMultiPop(2, front, back); err == nil {
		timeout, err = a.parseTimeout(1)
	}
	return p, timeout, err
}

// blmpopCommand is BLMPOP.
func blmpopCommand(c *Call) error {
	p, timeout, err := c.Args.parseBlockingPop("left", "right")
	if err != nil {
		return err
	}
	return c.popLists(p.keys, p.end(), p.count, timeout, (*Call).poppedElements)
}

// popLists takes elements off the first of some lists that exists. Keys are tried in the order of
// the arguments, so a key that stands first has precedence when two of them hold something.
func (c *Call) popLists(keys []string, end db.End, count int, timeout time.Duration, reply func(*Call, string, [][]byte)) error {
	var key string
	var values [][]byte
	w := db.Wait{Keys: keys, Type: db.TypeList, Do: func(tx *db.Tx, from string) (err error) {
		key, values, err = tx.Keyspace().PopFirst(end, count, from)
		return err
	}}
	return c.Await(w, timeout, func(c *Call) { reply(c, key, values) }, noArray)
}

// blmoveCommand is BLMOVE: the ends are checked before the timeout.
func blmoveCommand(c *Call) error {
	from, into, err := c.Args.parseEnds(3)
	if err != nil {
		return err
	}
	return blockingMove(c, from, into, 5)
}

// blockingMove is BLMOVE and BRPOPLPUSH, whose timeout is argument i. The destination is among the
// locked keys at the first attempt, and in Others while it waits: the writer may not have it
// locked.
func blockingMove(c *Call, from, into db.End, i int) error {
	timeout, err := c.Args.parseTimeout(i)
	if err != nil {
		return err
	}
	to := c.Key(2)
	var value []byte
	w := db.Wait{Keys: []string{c.Key(1)}, Type: db.TypeList, Others: []string{to}}
	w.Do = func(tx *db.Tx, key string) (err error) {
		value, err = tx.List(key).Move(to, from, into)
		return err
	}
	return c.Await(w, timeout, func(c *Call) { c.Out.Bulk(value) }, noString)
}

// blockingPopScored is BZPOPMIN and BZPOPMAX. Its reply is flat, the score after the member, in
// RESP3 too.
func blockingPopScored(c *Call, highest bool) error {
	keys, timeout, err := c.Args.keysBeforeTimeout()
	if err != nil {
		return err
	}
	return c.popSortedSets(keys, highest, 1, timeout, func(c *Call, key string, members []db.Scored) {
		c.Out.Array(3)
		c.Out.BulkString(key)
		c.Out.BulkString(members[0].Member)
		c.Out.Double(members[0].Score)
	})
}

// bzmpopCommand is BZMPOP.
func bzmpopCommand(c *Call) error {
	p, timeout, err := c.Args.parseBlockingPop("min", "max")
	if err != nil {
		return err
	}
	return c.popSortedSets(p.keys, p.fromBack, p.count, timeout, (*Call).popped)
}

// popSortedSets takes members off the first of some sorted sets that exists.
func (c *Call) popSortedSets(keys []string, highest bool, count int, timeout time.Duration, reply func(*Call, string, []db.Scored)) error {
	var key string
	var members []db.Scored
	w := db.Wait{Keys: keys, Type: db.TypeSortedSet, Do: func(tx *db.Tx, from string) (err error) {
		key, members, err = tx.Keyspace().PopFirstScored(highest, count, from)
		return err
	}}
	return c.Await(w, timeout, func(c *Call) { reply(c, key, members) }, noArray)
}
