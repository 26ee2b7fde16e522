package server

// Commands is the command table, sorted by name: what package command has, and what works on the session. It must not be changed.
var Commands []*Command

var table *Table

// The table is put together at run time, because COMMAND is in it and reads it.
func init() {
	table = NewTable(Data(),
		connectionCommands, transactionCommands, watchCommands, serverCommands, introspectionCommands, pubSubCommands, operatorCommands,
	)
	Commands = table.Commands
}

// Lookup returns the command of that name in any case, or nil. A subcommand is called "client|setname".
func Lookup(name string) *Command { return table.Lookup(name) }

// onSession makes a handler of a function that works on the session itself.
func onSession(run func(*Session, *call) error) func(*call) error {
	return func(c *call) error { return run(c.host.Session.(*Session), c) }
}
