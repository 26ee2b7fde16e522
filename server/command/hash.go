package command

import (
	"math"

	"github.com/stavedb/stave/db"
)

// HSET, HGET and the others that know nothing of deadlines; hash_expire.go has those that do. All
// see the hash as of the transaction's moment: a field whose time has come is not counted, listed
// or scanned, and HSET of it makes a new field. HSET removes a field's deadline, HINCRBY keeps it.
//
// Fields' names are in memory and their values on disk. So HKEYS, HLEN and HEXISTS read nothing
// from disk, and HGETALL reads a record for each field: its row says O(n), and the n are reads.
//
// HRANDFIELD chooses with the source of randomness of package db; handlers have none of their own.
// HGETDEL is Redis 8.0's, with the argument FIELDS that the commands of hash_expire.go have.

// hashCommands work on the fields of a hash. A hash without fields does not exist. Fields whose
// time has come are not seen.
var hashCommands = InGroup(GroupHash, []*Command{
	{Name: "hset", Arity: -4, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW update"), Run: hsetCommand},
	{Name: "hmset", Arity: -4, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW update"), Run: hmsetCommand},
	{Name: "hsetnx", Arity: 4, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW insert"),
		Run: func(c *Call) error {
			_, err := c.Tx.Hash(c.Key(1)).Put(c.Key(2), c.Arg(3), db.IfAbsent)
			return c.written(err)
		}},
	{Name: "hget", Arity: 3, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: hgetCommand},
	{Name: "hmget", Arity: -3, Flags: ReadOnly | Fast, Keys: OneKey("RO access"), Run: hmgetCommand},
	{Name: "hgetall", Arity: 2, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"), Run: hgetallCommand},
	{Name: "hkeys", Arity: 2, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"),
		Run: func(c *Call) error { return c.Tx.Hash(c.Key(1)).VisitFields(c.Out.Array, c.eachBulk) }},
	{Name: "hvals", Arity: 2, Flags: ReadOnly, Work: ByReply, Keys: OneKey("RO access"),
		Run: func(c *Call) error {
			return c.Tx.Hash(c.Key(1)).Visit(c.Out.Array, func(_, value []byte) bool { return c.eachBulk(value) })
		}},
	{Name: "hdel", Arity: -3, Flags: Write | Fast, Keys: OneKey("RW delete"),
		Run: func(c *Call) error { return c.Int(c.Tx.Hash(c.Key(1)).Delete(c.Args.Strings(2)...)) }},
	{Name: "hlen", Arity: 2, Flags: ReadOnly | Fast, Keys: OneKey("RO"),
		Run: func(c *Call) error { return c.Int(c.Tx.Hash(c.Key(1)).Len()) }},
	{Name: "hexists", Arity: 3, Flags: ReadOnly | Fast, Keys: OneKey("RO"),
		Run: func(c *Call) error { return c.Flag(c.Tx.Hash(c.Key(1)).Has(c.Key(2))) }},
	{Name: "hincrby", Arity: 4, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"), Run: withInt(3, hincrbyCommand)},
	{Name: "hscan", Arity: -3, Flags: ReadOnly, Keys: OneKey("RO access"), Run: hscanCommand},
	{Name: "hincrbyfloat", Arity: 4, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW access update"),
		Run: func(c *Call) error { return c.text(c.Tx.Hash(c.Key(1)).IncrDecimal(c.Key(2), c.Key(3))) }},
	{Name: "hstrlen", Arity: 3, Flags: ReadOnly | Fast, Keys: OneKey("RO"),
		Run: func(c *Call) error { return c.Int(c.Tx.Hash(c.Key(1)).ValueLen(c.Key(2))) }},
	{Name: "hrandfield", Arity: -2, Flags: ReadOnly, Keys: OneKey("RO access"), Run: hrandfieldCommand},
	{Name: "hgetdel", Arity: -5, Flags: Write | Fast, Keys: OneKey("RW access delete"), Run: hgetdelCommand},
})

// fields reads field value field value ... The number of arguments is checked here, because the
// table knows only a least number.
func (c *Call) fields() ([]db.Field, error) {
	if len(c.Args)%2 != 0 {
		return nil, ArityError(c.Command.Name)
	}
	fields := make([]db.Field, 0, len(c.Args)/2-1)
	for i := 2; i < len(c.Args); i += 2 {
		fields = append(fields, db.Field{Name: c.Key(i), Value: c.Arg(i + 1)})
	}
	return fields, nil
}

// hsetCommand is HSET: the reply counts the fields that are new. Fields that exist get the new
// value and are not counted. All fields are one commit. Of a field that is named twice the last
// value stays.
func hsetCommand(c *Call) error {
	fields, err := c.fields()
	if err != nil {
		return err
	}
	return c.Int(c.Tx.Hash(c.Key(1)).PutAll(fields...))
}

// hmsetCommand is HMSET, the older form that replies OK.
func hmsetCommand(c *Call) error {
	fields, err := c.fields()
	if err != nil {
		return err
	}
	_, err = c.Tx.Hash(c.Key(1)).PutAll(fields...)
	return c.Done(err)
}

// hgetCommand is HGET. The value is read into the output, as in getCommand.
func hgetCommand(c *Call) error {
	return c.appendedBulk(c.Tx.Hash(c.Key(1)).AppendTo(c.Out.BeginBulk(), c.Key(2)))
}

// hmgetCommand is HMGET: a null for each field that does not exist. It fails with WRONGTYPE, unlike
// MGET: there is one key, and it must be a hash or absent.
func hmgetCommand(c *Call) error {
	return c.fieldValues(c.Tx.Hash(c.Key(1)), c.Args.Strings(2))
}

// fieldValues replies with the values of fields. A field may be named often, so they are not gathered before they are
// written: the limit of a reply ends that.
func (c *Call) fieldValues(h db.Hash, fields []string) error {
	c.Out.Array(len(fields))
	return h.VisitMany(fields, c.eachOrNull)
}

// hgetallCommand is HGETALL: a map in RESP3, names and values in turn in RESP2. The order is that
// of the names' hashes. The number of fields comes before the first of them, so no field may vanish
// on the way: the key is locked until the last one is in the output.
func hgetallCommand(c *Call) error {
	return c.Tx.Hash(c.Key(1)).Visit(c.Out.Map, c.eachPair)
}

// hincrbyCommand is HINCRBY: a field that does not exist counts from 0. An overflow is refused and
// leaves the field. A value that is no integer has an error text of its own in Redis, which package
// structures returns.
func hincrbyCommand(c *Call, delta int64) error {
	return c.Int64(c.Tx.Hash(c.Key(1)).Incr(c.Key(2), delta))
}

// hscanCommand is HSCAN. NOVALUES replies names only. A page has about COUNT fields, whatever
// matches: MATCH is applied to the page, so a page may be empty and the scan not at its end.
func hscanCommand(c *Call) error {
	noValues := false
	cursor, o, done, err := c.scanCursor(db.TypeHash, func(i int) (int, error) {
		if !c.Args.Is(i, "novalues") {
			return 0, nil
		}
		noValues = true
		return 1, nil
	})
	if err != nil || done {
		return err
	}
	o.NoValues = noValues
	page := scanned(c.Tx.Hash(c.Key(1)).Scan(cursor, o.ScanOptions))
	page.name = func(f db.Field) string { return f.Name }
	if !noValues {
		page.value = func(f db.Field) { c.Out.Bulk(f.Value) }
	}
	return page.reply(c, o)
}

// hrandfieldCommand is HRANDFIELD. A positive count gives distinct fields, a negative one as many
// as it says, with repetitions; without a count the reply is one field or null. The order of the
// checks is Redis's, and the key comes last: a count out of range is refused for a key that does
// not exist. WITHVALUES halves the range of counts, because in RESP2 the reply has two elements for
// each field.
func hrandfieldCommand(c *Call) error {
	h := c.Tx.Hash(c.Key(1))
	if len(c.Args) == 2 {
		found := false
		err := h.VisitRandomFields(1, nil, func(name []byte) bool {
			found = true
			c.Out.Bulk(name)
			return true
		})
		if err == nil && !found {
			c.Out.Null()
		}
		return err
	}
	count, err := c.Args.parseSigned(2)
	switch {
	case err != nil:
		return err
	case len(c.Args) > 4 || len(c.Args) == 4 && !c.Args.Is(3, "withvalues"):
		return ErrSyntax
	case len(c.Args) == 3:
		// A negative count may be any number: the limit of a reply stops it long before memory
		// does.
		return h.VisitRandomFields(int(count), c.Out.Array, c.eachBulk)
	case count < -math.MaxInt64/2 || count > math.MaxInt64/2:
		return Error("ERR value is out of range")
	}
	if c.Out.Version() == 2 {
		return h.VisitRandom(int(count), func(n int) { c.Out.Array(2 * n) }, c.eachPair)
	}
	return h.VisitRandom(int(count), c.Out.Array, func(name, value []byte) bool {
		c.Out.Array(2)
		return c.eachPair(name, value)
	})
}

// hgetdelCommand is HGETDEL. The values are read before the fields are deleted, in one transaction;
// with the last field the key goes. A null stands for a field that does not exist.
func hgetdelCommand(c *Call) error {
	h, fields, err := c.hashFields()
	if err != nil {
		return err
	}
	c.Out.Array(len(fields))
	return h.VisitAndDelete(fields, c.eachOrNull)
}
