package server

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

var keyCommands = []*Command{
	{
		Name: "del", Arity: -2, Flags: Write, Group: GroupGeneric, Keys: manyKeys("RM delete"), Since: "1.0.0", Complexity: "O(1) a key",
		Summary: "Deletes keys and returns how many existed.", Syntax: "key [key ...]", run: deleteCommand,
	},
	{
		Name: "unlink", Arity: -2, Flags: Write | Fast, Group: GroupGeneric, Keys: manyKeys("RM delete"), Since: "4.0.0", Complexity: "O(1) a key",
		Summary: "Deletes keys and returns how many existed; the same as DEL here.", Syntax: "key [key ...]", run: deleteCommand,
	},
	{
		Name: "exists", Arity: -2, Flags: ReadOnly | Fast, Group: GroupGeneric, Keys: manyKeys("RO"), Since: "1.0.0", Complexity: "O(1) a key",
		Summary: "Returns how many of the keys exist.", Syntax: "key [key ...]", run: existsCommand,
	},
	{
		Name: "touch", Arity: -2, Flags: ReadOnly | Fast, Group: GroupGeneric, Keys: manyKeys("RO"), Since: "3.2.1", Complexity: "O(1) a key",
		Summary: "Returns how many of the keys exist; access times are not kept.", Syntax: "key [key ...]", run: existsCommand,
	},
	{
		Name: "type", Arity: 2, Flags: ReadOnly | Fast, Group: GroupGeneric, Keys: oneKey("RO"), Since: "1.0.0", Complexity: "O(1)",
		Summary: "Says what a key holds.", Syntax: "key", run: typeCommand,
	},
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
		Name: "rename", Arity: 3, Flags: Write, Group: GroupGeneric, Keys: renameKeys("OW update"), Since: "1.0.0",
		Complexity: "O(n), n being the size of the value, which is written again", Summary: "Gives a key another name, replacing what has it.",
		Syntax: "key newkey", run: renameCommand,
	},
	{
		Name: "renamenx", Arity: 3, Flags: Write | Fast, Group: GroupGeneric, Keys: renameKeys("OW insert"), Since: "1.0.0",
		Complexity: "O(n), n being the size of the value, which is written again", Summary: "Gives a key another name unless that exists.",
		Syntax: "key newkey", run: renamenxCommand,
	},
	expireRow("expire", "seconds", "1.0.0", "Lets a key expire after some seconds.", time.Second, true),
	expireRow("pexpire", "milliseconds", "2.6.0", "Lets a key expire after some milliseconds.", time.Millisecond, true),
	expireRow("expireat", "unix-time-seconds", "1.2.0", "Lets a key expire at a moment given in seconds.", time.Second, false),
	expireRow("pexpireat", "unix-time-milliseconds", "2.6.0", "Lets a key expire at a moment given in milliseconds.", time.Millisecond, false),
	ttlRow("ttl", "1.0.0", "Returns how many seconds a key has left to live.", time.Second, true),
	ttlRow("pttl", "2.6.0", "Returns how many milliseconds a key has left to live.", time.Millisecond, true),
	ttlRow("expiretime", "7.0.0", "Returns when a key expires, in seconds.", time.Second, false),
	ttlRow("pexpiretime", "7.0.0", "Returns when a key expires, in milliseconds.", time.Millisecond, false),
	{
		Name: "persist", Arity: 2, Flags: Write | Fast, Group: GroupGeneric, Keys: oneKey("RW update"), Since: "2.2.0", Complexity: "O(1)",
		Summary: "Takes the deadline of a key away.", Syntax: "key",
		run: func(c *call) error { return c.flag(c.tx.Key(c.key(1)).Persist()) },
	},
}

func renameKeys(use string) []Keys {
	return []Keys{{Use: "RW access delete", First: 1, Step: 1}, {Use: use, First: 2, Step: 1}}
}

func expireRow(name, unitName, since, summary string, unit time.Duration, relative bool) *Command {
	return &Command{
		Name: name, Arity: -3, Flags: Write | Fast, Group: GroupGeneric, Keys: oneKey("RW update"), Since: since,
		Complexity: "O(log n), n being the number of keys with a deadline", Summary: summary,
		Syntax: "key " + unitName + " [NX | XX | GT | LT]",
		run:    func(c *call) error { return expire(c, unit.Milliseconds(), relative) },
	}
}

func ttlRow(name, since, summary string, unit time.Duration, relative bool) *Command {
	return &Command{
		Name: name, Arity: 2, Flags: ReadOnly | Fast, Group: GroupGeneric, Keys: oneKey("RO access"), Since: since, Complexity: "O(1)",
		Summary: summary, Syntax: "key", run: func(c *call) error { return ttl(c, unit.Milliseconds(), relative) },
	}
}

// keyspace is the handle on all keys: within EXEC the transaction's, otherwise the store's, which locks a little at a time.
func (c *call) keyspace() db.Keyspace {
	if c.tx != nil {
		return c.tx.Keyspace()
	}
	return c.session.space.Keyspace()
}

func deleteCommand(c *call) error { return c.int(c.tx.Keyspace().Delete(c.strings(1)...)) }

func existsCommand(c *call) error { return c.int(c.tx.Keyspace().Exists(c.strings(1)...)) }

func typeCommand(c *call) error {
	t, err := c.tx.Key(c.key(1)).Type()
	if err == nil {
		c.out.Simple(t.String())
	}
	return err
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

func renameCommand(c *call) error {
	if err := c.tx.Key(c.key(1)).Rename(c.key(2)); err != nil {
		return err
	}
	return c.ok()
}

func renamenxCommand(c *call) error {
	return c.flag(c.tx.Key(c.key(1)).RenameIfAbsent(c.key(2)))
}

// expireConditions reads the words behind EXPIRE's number.
func (c *call) expireConditions(i int) (db.ExpireCondition, error) {
	var condition db.ExpireCondition
	for ; i < len(c.args); i++ {
		switch {
		case c.is(i, "nx"):
			condition |= db.ExpireIfNone
		case c.is(i, "xx"):
			condition |= db.ExpireIfAny
		case c.is(i, "gt"):
			condition |= db.ExpireIfLater
		case c.is(i, "lt"):
			condition |= db.ExpireIfSooner
		default:
			return 0, errorf("ERR Unsupported option %s", clip(c.arg(i), len(c.arg(i))))
		}
	}
	switch {
	case condition&db.ExpireIfNone != 0 && condition != db.ExpireIfNone:
		return 0, structures.ErrExpireNX
	case condition&db.ExpireIfLater != 0 && condition&db.ExpireIfSooner != 0:
		return 0, structures.ErrExpireGTLT
	}
	return condition, nil
}

func expire(c *call, unit int64, relative bool) error {
	condition, err := c.expireConditions(3)
	if err != nil {
		return err
	}
	n, err := c.parseInt(2)
	if err != nil {
		return err
	}
	base := int64(0)
	if relative {
		base = c.now()
	}
	// A moment in the past is allowed: it deletes the key.
	if n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-base {
		return errorf("ERR invalid expire time in '%s' command", c.command.Name)
	}
	return c.flag(c.tx.Key(c.key(1)).ExpireAt(time.UnixMilli(n*unit+base), condition))
}

// ttl replies -2 for a key that does not exist and -1 for one without a deadline.
func ttl(c *call, unit int64, relative bool) error {
	deadline, err := c.tx.Key(c.key(1)).Deadline()
	switch {
	case errors.Is(err, db.ErrNotFound):
		c.out.Int(-2)
		return nil
	case err != nil:
		return err
	case deadline.IsZero():
		c.out.Int(-1)
		return nil
	}
	ms := deadline.UnixMilli()
	if relative {
		ms = max(ms-c.now(), 0)
	}
	if unit > 1 {
		ms = ms/unit + (ms%unit+unit/2)/unit // to the nearest second, as in Redis
	}
	c.out.Int(ms)
	return nil
}

func dbsizeCommand(c *call) error {
	n := 0
	if c.tx != nil {
		n = c.tx.Len()
	} else {
		n = c.session.space.Len()
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
		err = c.session.space.Flush()
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
		if err := c.session.space.FlushAll(); err != nil {
			return err
		}
		return c.ok()
	}
	for n := range c.session.server.store.Namespaces() {
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

// now is the moment of the command in Unix milliseconds: the transaction's, where there is one.
func (c *call) now() int64 {
	if c.tx != nil {
		return c.tx.Now()
	}
	return time.Now().UnixMilli()
}

// containerHelp lists the subcommands of a container, from the table.
func containerHelp(c *call) error {
	container := c.command.container
	name := strings.ToUpper(container.Name)
	lines := []string{name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	for _, sub := range container.Subcommands {
		usage := strings.ToUpper(sub.Name[len(container.Name)+1:])
		if sub.Syntax != "" {
			usage += " " + sub.Syntax
		}
		lines = append(lines, usage, "    "+sub.Summary)
	}
	c.out.Array(len(lines))
	for _, line := range lines {
		c.out.Simple(line)
	}
	return nil
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
	if min(index[0], index[1]) < 0 || max(index[0], index[1]) >= c.session.server.databases() {
		return errDBIndex
	}
	var err error
	if c.tx != nil {
		err = c.tx.Swap(index[0], index[1])
	} else {
		err = c.session.server.store.Swap(index[0], index[1])
	}
	if err != nil {
		return err
	}
	return c.ok()
}
