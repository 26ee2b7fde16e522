package server

var hyperLogLogCommands = []*Command{
	{
		Name: "pfadd", Arity: -2, Flags: Write | DenyOOM | Fast, Group: GroupHyperLogLog, Keys: oneKey("RW insert"), Since: "2.8.9",
		Complexity: "O(1) an element; up to 12 KiB are written", Summary: "Adds elements to a HyperLogLog.",
		Syntax: "key [element [element ...]]", run: pfaddCommand,
	},
	{
		Name: "pfcount", Arity: -2, Flags: ReadOnly, Group: GroupHyperLogLog, Keys: manyKeys("RW access"), Since: "2.8.9",
		Complexity: "O(n), n being the number of keys, with a large constant",
		Summary:    "Estimates how many different elements HyperLogLogs have together.", Syntax: "key [key ...]", run: pfcountCommand,
	},
	{
		Name: "pfmerge", Arity: -2, Flags: Write | DenyOOM, Group: GroupHyperLogLog,
		Keys:  []Keys{{Use: "RW access insert", First: 1, Step: 1}, {Use: "RO access", First: 2, Last: -1, Step: 1}},
		Since: "2.8.9", Complexity: "O(n), n being the number of keys, with a large constant",
		Summary: "Adds HyperLogLogs to another one.", Syntax: "destkey [sourcekey [sourcekey ...]]", run: pfmergeCommand,
	},
}

func pfaddCommand(c *call) error {
	return c.flag(c.tx.HyperLogLog(c.key(1)).Add(c.args[2:]...))
}

func pfcountCommand(c *call) error {
	n, err := c.tx.Keyspace().CountHyperLogLogs(c.strings(1)...)
	return c.int64(int64(n), err)
}

func pfmergeCommand(c *call) error {
	if err := c.tx.HyperLogLog(c.key(1)).Merge(c.strings(2)...); err != nil {
		return err
	}
	return c.ok()
}
