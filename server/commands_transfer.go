package server

import (
	"errors"
	"math"

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
}

const (
	errSameKey replyError = "ERR source and destination objects are the same"
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
	case n < 0 || n >= int64(c.host.Databases):
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
