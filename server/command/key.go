package command

import (
	"errors"

	"github.com/stavedb/stave/db"
)

// keyCommands work on keys whatever they hold.
var keyCommands = InGroup(GroupGeneric, []*Command{
	{Name: "del", Arity: -2, Flags: Write, Work: BySize, Keys: ManyKeys("RM delete"), Run: deleteCommand},
	{Name: "unlink", Arity: -2, Flags: Write | Fast, Keys: ManyKeys("RM delete"), Run: deleteCommand},
	{Name: "exists", Arity: -2, Flags: ReadOnly | Fast, Keys: ManyKeys("RO"), Run: existsCommand},
	{Name: "touch", Arity: -2, Flags: ReadOnly | Fast, Keys: ManyKeys("RO"), Run: existsCommand},
	{Name: "type", Arity: 2, Flags: ReadOnly | Fast, Keys: OneKey("RO"), Run: typeCommand},
	{Name: "rename", Arity: 3, Flags: Write, Keys: renameKeys("OW update"), Run: renameCommand},
	{Name: "renamenx", Arity: 3, Flags: Write | Fast, Work: Unbounded, Keys: renameKeys("OW insert"), Run: renamenxCommand},
})

// renameKeys are the keys of RENAME and RENAMENX: one goes, one comes.
func renameKeys(use string) []Keys {
	return []Keys{{Use: "RW access delete", First: 1, Step: 1}, {Use: use, First: 2, Step: 1}}
}

// deleteCommand is DEL and UNLINK. Both are O(1) a key: memory of large values is freed in the
// background. All keys are deleted in one commit. A key that is named twice counts once.
func deleteCommand(c *Call) error { return c.Int(c.Tx.Keyspace().Delete(c.Args.Strings(1)...)) }

// existsCommand is EXISTS and TOUCH. A key that is named twice counts twice, as in Redis.
func existsCommand(c *Call) error { return c.Int(c.Tx.Keyspace().Exists(c.Args.Strings(1)...)) }

// typeCommand is TYPE: a simple string, "none" for a key that does not exist. A bitmap and a
// HyperLogLog are strings, places are a sorted set: those are views and not types.
func typeCommand(c *Call) error {
	t, err := c.Tx.Key(c.Key(1)).Type()
	if err == nil {
		c.Out.Simple(t.String())
	}
	return err
}

// renameCommand is RENAME. A key may be given its own name, if it exists. The deadline goes along,
// and what the new name held is gone, in the same commit. The elements are written again under the
// new name, because a record's name has its key in it: O(n), where Redis moves a pointer.
func renameCommand(c *Call) error {
	return c.Done(c.Tx.Key(c.Key(1)).Rename(c.Key(2)))
}

// renamenxCommand is RENAMENX: 0 if the new name is taken, also by the key itself. A source that
// does not exist is an error before the new name is checked.
func renamenxCommand(c *Call) error {
	err := c.Tx.Key(c.Key(1)).Rename(c.Key(2), db.IfAbsent)
	if errors.Is(err, db.ErrNotFound) {
		return err
	}
	return c.written(err)
}
