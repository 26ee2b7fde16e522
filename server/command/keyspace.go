package command

import (
	"math"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/internal/serverside"
)

// KEYS and SCAN skip keys whose deadline has passed, DBSIZE counts them until the cycle has deleted
// them. KEYS collects all names before it replies: on a large database SCAN is the one to use.
// FLUSHDB, FLUSHALL and SWAPDB alone are O(1) and write one small record; within EXEC, where they
// must be rolled back with the rest, they go key by key.

// keyspaceCommands run on all keys of a database. They name no keys, so outside of EXEC they have
// no transaction: they work on the store, which locks a little at a time, and see no single moment
// of it. Within EXEC they see the transaction's.
var keyspaceCommands = []*Command{
	{Name: "keys", Arity: 2, Flags: ReadOnly | WholeKeyspace | Dangerous, Group: GroupGeneric, Run: keysCommand},
	{Name: "scan", Arity: -2, Flags: ReadOnly | WholeKeyspace, Group: GroupGeneric, Run: scanCommand},
	{Name: "dbsize", Arity: 1, Flags: ReadOnly | Fast | WholeKeyspace, Group: GroupServer, Run: dbsizeCommand},
	{Name: "flushdb", Arity: -1, Flags: Write | WholeKeyspace | Dangerous, Group: GroupServer, Run: flushdbCommand},
	{Name: "flushall", Arity: -1, Flags: Write | WholeKeyspace | Dangerous, Group: GroupServer, Run: flushallCommand},
	{Name: "swapdb", Arity: 3, Flags: Write | Fast | WholeKeyspace | Dangerous, Group: GroupServer, Run: swapdbCommand},
	{Name: "randomkey", Arity: 1, Flags: ReadOnly | WholeKeyspace, Group: GroupGeneric, Run: randomkeyCommand},
}

// database is what a namespace is to commands on all of its keys.
type database interface {
	Len() int
	Flush() error
	Swap(a, b int) error
}

// database is within EXEC the transaction's namespace, otherwise the store's, which locks a little at a time.
func (c *Call) database() database {
	if c.Tx != nil {
		return c.Tx
	}
	return c.Host.Store
}

// keyspace is the handle on its keys, whose calls end when nobody waits for the command.
func (c *Call) keyspace() db.Keyspace {
	if c.Tx != nil {
		return c.Tx.Keyspace()
	}
	return serverside.DB.InterruptibleKeyspace(c.Host.Store, c.Host.Interrupted)
}

// keysCommand is KEYS. The pattern is Redis's glob, on bytes and not on characters. A pattern
// without special characters still reads every key.
func keysCommand(c *Call) error {
	keys, err := c.keyspace().Keys(c.Key(1))
	if err != nil {
		return err
	}
	return c.Names(keys)
}

// unknownType is a type that no key holds: SCAN with a type that does not exist finds nothing, as
// in Redis.
const unknownType db.Type = 255

// typeByName is the type that SCAN's TYPE names, in any case.
func typeByName(name []byte) db.Type {
	for _, t := range []db.Type{db.TypeString, db.TypeHash, db.TypeList, db.TypeSet, db.TypeSortedSet, db.TypeStream} {
		if equalFold(name, t.String()) {
			return t
		}
	}
	return unknownType
}

// scanCommand is SCAN. A cursor is a position in the order of hashes, so it needs no state here and
// never becomes invalid: a key that is there from the first call to the last is returned, and only
// once.
func scanCommand(c *Call) error {
	cursor, err := c.Args.parseCursor(1)
	if err != nil {
		return err
	}
	var o db.KeyScanOptions
	element, err := c.Args.parseScanOptions(2, func(i int) (int, error) {
		if !c.Args.Is(i, "type") || i+1 == len(c.Args) {
			return 0, nil
		}
		o.Type = typeByName(c.Arg(i + 1))
		return 2, nil
	})
	if err != nil {
		return err
	}
	o.Match, o.Count = element.Match, element.Count
	page := scanned(c.keyspace().Scan(cursor, o))
	page.name = func(info db.KeyInfo) string { return info.Key }
	return page.reply(c, element)
}

// dbsizeCommand is DBSIZE. Keys count until they are reaped, as in Redis. The count is kept, not
// made.
func dbsizeCommand(c *Call) error {
	return c.Int(c.database().Len(), nil)
}

// flushMode checks the word after FLUSHDB and FLUSHALL. Both modes do the same: a flush is O(1),
// and memory is freed in the background.
func (a Args) flushMode() error {
	switch {
	case len(a) == 1:
		return nil
	case len(a) == 2 && (a.Is(1, "sync") || a.Is(1, "async")):
		return nil
	}
	return ErrSyntax
}

// flushdbCommand is FLUSHDB: one small record in the log, whatever the number of keys.
func flushdbCommand(c *Call) error {
	if err := c.Args.flushMode(); err != nil {
		return err
	}
	return c.Done(c.database().Flush())
}

// flushallCommand is FLUSHALL: it empties all databases of the store, also those that SELECT does
// not reach.
func flushallCommand(c *Call) error {
	if err := c.Args.flushMode(); err != nil {
		return err
	}
	if c.Tx == nil {
		return c.Done(c.Host.Store.FlushAll())
	}
	for n := range c.Host.Store.Namespaces() {
		tx, err := c.Tx.Use(n)
		if err == nil {
			err = tx.Flush()
		}
		if err != nil {
			return err
		}
	}
	return c.OK()
}

// swapdbCommand is SWAPDB: one small record of its own in the log, or within EXEC a move of all
// keys.
func swapdbCommand(c *Call) error {
	var index [2]int
	for i, which := range []string{"first", "second"} {
		n, ok := number.ParseInt(c.Arg(i + 1))
		if !ok || n < math.MinInt32 || n > math.MaxInt32 {
			return Errorf("ERR invalid %s DB index", which)
		}
		index[i] = int(n)
	}
	if min(index[0], index[1]) < 0 || max(index[0], index[1]) >= c.Host.Databases {
		return ErrDBIndex
	}
	return c.Done(c.database().Swap(index[0], index[1]))
}

// randomkeyCommand is RANDOMKEY: null if there are no keys. It is almost uniform, and O(1): see
// db.Keyspace.RandomKey.
func randomkeyCommand(c *Call) error {
	key, err := c.keyspace().RandomKey()
	return c.bulk([]byte(key), err)
}
