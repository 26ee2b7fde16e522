package server

import (
	"math"

	"github.com/stavedb/stave/db"
)

var keyspaceCommands = []*Command{
	{
		Name: "keys", Arity: 2, Flags: ReadOnly | keyspace | dangerous, Group: GroupGeneric, Since: "1.0.0",
		Complexity: "O(n), n being the number of keys", Summary: "Returns all keys that match a pattern.", Syntax: "pattern", run: keysCommand,
	},
	{
		Name: "scan", Arity: -2, Flags: ReadOnly | keyspace, Group: GroupGeneric, Since: "2.8.0",
		Complexity: "O(1) a call, O(n) for all keys", Summary: "Returns some keys and where to go on.",
		Syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]", run: scanCommand,
	},
	{
		Name: "dbsize", Arity: 1, Flags: ReadOnly | Fast | keyspace, Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Returns the number of keys.", run: dbsizeCommand,
	},
	{
		Name: "flushdb", Arity: -1, Flags: Write | keyspace | dangerous, Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Deletes all keys of the database.", Syntax: "[ASYNC | SYNC]", run: flushdbCommand,
	},
	{
		Name: "flushall", Arity: -1, Flags: Write | keyspace | dangerous, Group: GroupServer, Since: "1.0.0",
		Complexity: "O(n), n being the number of databases", Summary: "Deletes all keys of all databases.", Syntax: "[ASYNC | SYNC]", run: flushallCommand,
	},
	{
		Name: "swapdb", Arity: 3, Flags: Write | Fast | keyspace | dangerous, Group: GroupServer, Since: "4.0.0", Complexity: "O(1)",
		Summary: "Exchanges what two databases hold.", Syntax: "index1 index2", run: swapdbCommand,
	},
	{
		Name: "randomkey", Arity: 1, Flags: ReadOnly | keyspace, Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Returns a key chosen at random.", run: randomkeyCommand,
	},
}

// keyspace is the handle on all keys: within EXEC the transaction's, otherwise the store's, which locks a little at a time.
func (c *call) keyspace() db.Keyspace {
	if c.tx != nil {
		return c.tx.Keyspace()
	}
	return c.host.Store.Keyspace()
}

func keysCommand(c *call) error {
	keys, err := c.keyspace().Keys(c.key(1))
	if err != nil {
		return err
	}
	c.out.Array(len(keys))
	for _, key := range keys {
		c.out.BulkString(key)
	}
	return nil
}

// unknownType is a type that no key holds: SCAN with a type that does not exist finds nothing, as in Redis.
const unknownType db.Type = 255

func typeByName(name []byte) db.Type {
	for _, t := range []db.Type{db.TypeString, db.TypeHash, db.TypeList, db.TypeSet, db.TypeSortedSet} {
		if equalFold(name, t.String()) {
			return t
		}
	}
	return unknownType
}

func scanCommand(c *call) error {
	cursor, err := c.parseCursor(1)
	if err != nil {
		return err
	}
	var o db.KeyScanOptions
	element, err := c.scanOptions(2, func(i int) (int, error) {
		if !c.is(i, "type") || i+1 == len(c.args) {
			return 0, nil
		}
		o.Type = typeByName(c.arg(i + 1))
		return 2, nil
	})
	if err != nil {
		return err
	}
	o.Match, o.Count = element.Match, element.Count
	keys, next, err := c.keyspace().Scan(cursor, o)
	if err != nil {
		return err
	}
	keys = dropUnmatched(element, keys, func(info db.KeyInfo) string { return info.Key })
	c.scanHeader(next, len(keys))
	for _, info := range keys {
		c.out.BulkString(info.Key)
	}
	return nil
}

func dbsizeCommand(c *call) error {
	n := 0
	if c.tx != nil {
		n = c.tx.Len()
	} else {
		n = c.host.Store.Len()
	}
	c.out.Int(int64(n))
	return nil
}

// flushMode checks the word behind FLUSHDB and FLUSHALL. Both modes do the same: a flush is O(1), and memory is freed in the
// background.
func (c *call) flushMode() error {
	switch {
	case len(c.args) == 1:
		return nil
	case len(c.args) == 2 && (c.is(1, "sync") || c.is(1, "async")):
		return nil
	}
	return errSyntax
}

func flushdbCommand(c *call) error {
	if err := c.flushMode(); err != nil {
		return err
	}
	var err error
	if c.tx != nil {
		err = c.tx.Flush()
	} else {
		err = c.host.Store.Flush()
	}
	if err != nil {
		return err
	}
	return c.ok()
}

func flushallCommand(c *call) error {
	if err := c.flushMode(); err != nil {
		return err
	}
	if c.tx == nil {
		if err := c.host.Store.FlushAll(); err != nil {
			return err
		}
		return c.ok()
	}
	for n := range c.host.Store.Namespaces() {
		tx, err := c.tx.Use(n)
		if err == nil {
			err = tx.Flush()
		}
		if err != nil {
			return err
		}
	}
	return c.ok()
}

// swapdbCommand is SWAPDB: one small record of its own in the log, or within EXEC a move of all keys.
func swapdbCommand(c *call) error {
	var index [2]int
	for i, which := range []string{"first", "second"} {
		n, ok := parseInt(c.arg(i + 1))
		if !ok || n < math.MinInt32 || n > math.MaxInt32 {
			return errorf("ERR invalid %s DB index", which)
		}
		index[i] = int(n)
	}
	if min(index[0], index[1]) < 0 || max(index[0], index[1]) >= c.host.Databases {
		return errDBIndex
	}
	var err error
	if c.tx != nil {
		err = c.tx.Swap(index[0], index[1])
	} else {
		err = c.host.Store.Swap(index[0], index[1])
	}
	if err != nil {
		return err
	}
	return c.ok()
}
func randomkeyCommand(c *call) error {
	key, err := c.keyspace().RandomKey()
	return c.bulk([]byte(key), err)
}
