package command

// hyperLogLogCommands estimate how many distinct elements there were, with 0.81 % standard error,
// in a string of 12 KiB at most. Its bytes are Redis's, so GET, SET, DUMP and RESTORE carry it in
// both directions.
var hyperLogLogCommands = InGroup(GroupHyperLogLog, []*Command{
	{Name: "pfadd", Arity: -2, Flags: Write | DenyOOM | Fast, Keys: OneKey("RW insert"), Run: pfaddCommand},
	{Name: "pfcount", Arity: -2, Flags: ReadOnly | savesCount, Keys: ManyKeys("RW access"), Run: pfcountCommand},
	{Name: "pfmerge", Arity: -2, Flags: Write | DenyOOM,
		Keys: []Keys{{Use: "RW access insert", First: 1, Step: 1}, {Use: "RO access", First: 2, Last: -1, Step: 1}}, Run: pfmergeCommand},
})

// pfaddCommand is PFADD: 1 if the estimate may have changed. Without elements it makes an empty
// sketch, and 1 says that the key is new. The key's deadline stays.
func pfaddCommand(c *Call) error {
	return c.Flag(c.Tx.HyperLogLog(c.Key(1)).Add(c.Args[2:]...))
}

// pfcountCommand is PFCOUNT: of several keys it counts the union, without writing it. The estimate of
// one is kept in the string until the sketch changes, as in Redis.
func pfcountCommand(c *Call) error {
	n, err := c.Tx.Keyspace().CountHyperLogLogs(c.Args.Strings(1)...)
	return c.Int64(int64(n), err)
}

// pfmergeCommand is PFMERGE. The destination is one of the sources, if it exists. A dense source
// makes the destination dense. A source that does not exist adds nothing.
func pfmergeCommand(c *Call) error {
	return c.Done(c.Tx.HyperLogLog(c.Key(1)).Merge(c.Args.Strings(2)...))
}
