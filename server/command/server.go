package command

import "time"

// Commands that any client asks of a server, and that need nothing of it.

var serverCommands = []*Command{
	moduleCommand,
	{Name: "time", Arity: 1, Flags: Describes | AnyState | Fast, Group: GroupServer, Run: timeCommand},
}

// timeCommand is TIME.
func timeCommand(c *Call) error {
	now := time.Now()
	c.Out.Array(2)
	c.Out.BulkInt(now.Unix())
	c.Out.BulkInt(int64(now.Nanosecond() / 1000))
	return nil
}

const errNoModules Error = "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it from a " +
	"local connection, otherwise you need to set this option in the configuration file, and then restart the server."

func refuseModules(*Call) error { return errNoModules }

// moduleCommand is MODULE.
var moduleCommand = &Command{
	Name: "module", Arity: -2, Group: GroupServer,
	Subcommands: []*Command{
		{Name: "module|list", Arity: 2, Flags: Describes | Admin | NoScript, Run: func(c *Call) error { c.Out.Array(0); return nil }},
		{Name: "module|load", Arity: -3, Flags: Admin | NoScript | NoAsyncLoading, Run: refuseModules},
		{Name: "module|loadex", Arity: -3, Flags: Admin | NoScript | NoAsyncLoading, Run: refuseModules},
		{Name: "module|unload", Arity: 3, Flags: Admin | NoScript | NoAsyncLoading, Run: refuseModules},
		HelpRow("module"),
	},
}
