package command

import (
	"errors"

	"github.com/stavedb/stave/db"
)

// COPY and MOVE reach another database. The row names the keys of the session's database only; the
// key of the same name in the other one has to be locked too, which package db does: a stripe is
// chosen by the key alone, without its namespace.

// keyCopyCommands write the value of a key again under another name, with its deadline and those of
// its fields.
var keyCopyCommands = []*Command{
	{Name: "copy", Arity: -3, Flags: Write | DenyOOM, Group: GroupGeneric,
		Keys: []Keys{{Use: "RO access", First: 1, Step: 1}, {Use: "OW update", First: 2, Step: 1}}, Run: copyCommand},
	{Name: "move", Arity: 3, Flags: Write | Fast, Work: Unbounded, Group: GroupGeneric, Keys: OneKey("RW access update"), Run: moveCommand},
}

const (
	errSameKey Error = "ERR source and destination objects are the same"
)

// copied turns the outcome of a transfer into a reply. The two errors have texts of their own in
// Redis; anything else is passed on.
func (c *Call) copied(err error) error {
	switch {
	case errors.Is(err, db.ErrSameKey):
		return errSameKey
	case errors.Is(err, db.ErrNamespace):
		return ErrDBIndex
	}
	return c.written(err)
}

// copyCommand is COPY: 0 if the destination exists and REPLACE is not there. With DB and the same
// name it copies between databases; the same name in the same database is an error. REPLACE deletes
// the destination in the same commit.
func copyCommand(c *Call) error {
	namespace, options := c.Tx.Namespace(), []db.WriteOption{db.IfAbsent}
	for i := 3; i < len(c.Args); i++ {
		switch {
		case c.Args.Is(i, "replace"):
			options = nil
		case c.Args.Is(i, "db") && i+1 < len(c.Args):
			var err error
			if namespace, err = c.ParseDatabase(i + 1); err != nil {
				return err
			}
			i++
		default:
			return ErrSyntax
		}
	}
	return c.copied(c.Tx.Key(c.Key(1)).CopyTo(namespace, c.Key(2), options...))
}

// moveCommand is MOVE: 0 if the key does not exist, or exists in the other database too. Moving to
// the database that the session is in is an error, not 0.
func moveCommand(c *Call) error {
	namespace, err := c.ParseDatabase(2)
	if err != nil {
		return err
	}
	return c.copied(c.Tx.Key(c.Key(1)).MoveTo(namespace))
}
