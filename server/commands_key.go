package server

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
		Name: "rename", Arity: 3, Flags: Write, Group: GroupGeneric, Keys: renameKeys("OW update"), Since: "1.0.0",
		Complexity: "O(n), n being the size of the value, which is written again", Summary: "Gives a key another name, replacing what has it.",
		Syntax: "key newkey", run: renameCommand,
	},
	{
		Name: "renamenx", Arity: 3, Flags: Write | Fast, Group: GroupGeneric, Keys: renameKeys("OW insert"), Since: "1.0.0",
		Complexity: "O(n), n being the size of the value, which is written again", Summary: "Gives a key another name unless that exists.",
		Syntax: "key newkey", run: renamenxCommand,
	},
}

func renameKeys(use string) []Keys {
	return []Keys{{Use: "RW access delete", First: 1, Step: 1}, {Use: use, First: 2, Step: 1}}
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

func renameCommand(c *call) error {
	if err := c.tx.Key(c.key(1)).Rename(c.key(2)); err != nil {
		return err
	}
	return c.ok()
}

func renamenxCommand(c *call) error {
	return c.flag(c.tx.Key(c.key(1)).RenameIfAbsent(c.key(2)))
}
