package server

import (
	"errors"
	"math"
	"time"

	"github.com/stavedb/stave/db"
)

var keyCopyCommands = []*Command{
	{
		Name: "copy", Arity: -3, Flags: Write | DenyOOM, Group: GroupGeneric,
		Keys:  []Keys{{Use: "RO access", First: 1, Step: 1}, {Use: "OW update", First: 2, Step: 1}},
		Since: "6.2.0", Complexity: "O(n), n being the size of the value", Summary: "Copies a key, with its deadline, to another name or database.",
		Syntax: "source destination [DB destination-db] [REPLACE]", run: copyCommand,
	},
	{
		Name: "move", Arity: 3, Flags: Write | Fast, Group: GroupGeneric, Keys: oneKey("RW access update"), Since: "1.0.0",
		Complexity: "O(n), n being the size of the value, which is written again", Summary: "Moves a key to another database.",
		Syntax: "key db", run: moveCommand,
	},
	{
		Name: "randomkey", Arity: 1, Flags: ReadOnly | keyspace, Group: GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Returns a key chosen at random.", run: randomkeyCommand,
	},
	{
		Name: "dump", Arity: 2, Flags: ReadOnly, Group: GroupGeneric, Keys: oneKey("RO access"), Since: "2.6.0",
		Complexity: "O(n), n being the size of the value", Summary: "Returns what a key holds in a form that RESTORE reads, also Redis's.",
		Syntax: "key", run: func(c *call) error { return c.bulk(c.tx.Key(c.key(1)).Dump()) },
	},
	{
		Name: "restore", Arity: -4, Flags: Write | DenyOOM | dangerous, Group: GroupGeneric, Keys: oneKey("OW update"), Since: "2.6.0",
		Complexity: "O(n), n being the size of the value", Summary: "Makes a key hold what DUMP returned, here or by Redis.",
		Syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]", run: restoreCommand,
	},
}

const (
	errSameKey    replyError = "ERR source and destination objects are the same"
	errBusyKey    replyError = "BUSYKEY Target key name already exists."
	errPayload    replyError = "ERR DUMP payload version or checksum are wrong"
	errBadPayload replyError = "ERR Bad data format"
)

// copied turns the outcome of a transfer into a reply.
func (c *call) copied(done bool, err error) error {
	switch {
	case errors.Is(err, db.ErrSameKey):
		return errSameKey
	case errors.Is(err, db.ErrNamespace):
		return errDBIndex
	}
	return c.flag(done, err)
}

// parseDatabase returns argument i as the index of a database.
func (c *call) parseDatabase(i int) (int, error) {
	n, err := c.parseInt(i)
	switch {
	case err != nil:
		return 0, err
	case n < math.MinInt32 || n > math.MaxInt32:
		return 0, errBetween(math.MinInt32, math.MaxInt32)
	case n < 0 || n >= int64(c.session.server.databases()):
		return 0, errDBIndex
	}
	return int(n), nil
}

func copyCommand(c *call) error {
	namespace, replace := c.tx.Namespace(), false
	for i := 3; i < len(c.args); i++ {
		switch {
		case c.is(i, "replace"):
			replace = true
		case c.is(i, "db") && i+1 < len(c.args):
			var err error
			if namespace, err = c.parseDatabase(i + 1); err != nil {
				return err
			}
			i++
		default:
			return errSyntax
		}
	}
	return c.copied(c.tx.Key(c.key(1)).CopyTo(namespace, c.key(2), replace))
}

func moveCommand(c *call) error {
	namespace, err := c.parseDatabase(2)
	if err != nil {
		return err
	}
	return c.copied(c.tx.Key(c.key(1)).MoveTo(namespace))
}

func randomkeyCommand(c *call) error {
	key, err := c.keyspace().RandomKey()
	return c.bulk([]byte(key), err)
}

// restoreOptions reads the words behind the payload of RESTORE. Idle times and frequencies are checked, and not kept.
func (c *call) restoreOptions() (replace, absolute bool, err error) {
	idle, frequency := false, false
	for i := 4; i < len(c.args); i++ {
		more := i+1 < len(c.args)
		switch {
		case c.is(i, "replace"):
			replace = true
		case c.is(i, "absttl"):
			absolute = true
		case c.is(i, "idletime") && more && !frequency, c.is(i, "freq") && more && !idle:
			n, err := c.parseInt(i + 1)
			if err != nil {
				return false, false, err
			}
			if c.is(i, "freq") {
				if n < 0 || n > 255 {
					return false, false, replyError("ERR Invalid FREQ value, must be >= 0 and <= 255")
				}
				frequency = true
			} else {
				if n < 0 {
					return false, false, replyError("ERR Invalid IDLETIME value, must be >= 0")
				}
				idle = true
			}
			i++
		default:
			return false, false, errSyntax
		}
	}
	return replace, absolute, nil
}

// restoreCommand is RESTORE. The order of the checks is Redis's: the words, the key, the time to live, the payload.
func restoreCommand(c *call) error {
	replace, absolute, err := c.restoreOptions()
	if err != nil {
		return err
	}
	key := c.tx.Key(c.key(1))
	if !replace {
		if exists, err := key.Exists(); err != nil {
			return err
		} else if exists {
			return errBusyKey
		}
	}
	ttl, err := c.parseInt(2)
	if err != nil {
		return err
	}
	if ttl < 0 {
		return replyError("ERR Invalid TTL value, must be >= 0")
	}
	o := db.RestoreOptions{Replace: replace}
	if ttl > 0 {
		if !absolute {
			ttl += c.now()
		}
		o.Deadline = time.UnixMilli(ttl)
	}
	switch err = key.Restore(c.arg(3), o); {
	case errors.Is(err, db.ErrPayload):
		return errPayload
	case errors.Is(err, db.ErrBadPayload):
		return errBadPayload
	case err != nil:
		return err
	}
	return c.ok()
}
