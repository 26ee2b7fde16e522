package server

import (
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/structures"
)

// COMMAND is how a client learns the protocol: drivers read the positions of keys from it, shells
// their help. All of it is derived from the rows, so that it cannot disagree with them; the forms
// are Redis's, with tips always empty and one key specification for each run of keys.

// introspectionCommands describe the table, for clients that find keys in requests by it, and for
// shells.
var introspectionCommands = []*command.Command{
	{
		Name: "command", Arity: -1, Flags: anyStateFlags | command.ConnectionCategory, Group: command.GroupServer, Since: "2.8.13",
		Complexity: "O(n), n being the number of commands", Summary: "Describes all commands.", Run: commandCommand,
		Subcommands: []*command.Command{
			{
				Name: "command|count", Arity: 2, Flags: anyStateFlags | command.ConnectionCategory, Since: "2.8.13", Complexity: "O(1)",
				Summary: "Returns the number of commands.",
				Run:     func(c *command.Call) error { c.Out.Int(int64(len(table.Commands))); return nil },
			},
			{
				Name: "command|info", Arity: -2, Flags: anyStateFlags | command.ConnectionCategory, Since: "2.8.13", Complexity: "O(n), n being the number of commands given",
				Summary: "Describes some commands, or all.", Syntax: "[command-name [command-name ...]]", Run: commandInfo,
			},
			{
				Name: "command|docs", Arity: -2, Flags: anyStateFlags | command.ConnectionCategory, Since: "7.0.0", Complexity: "O(n), n being the number of commands given",
				Summary: "Documents some commands, or all.", Syntax: "[command-name [command-name ...]]", Run: commandDocs,
			},
			{
				Name: "command|list", Arity: -2, Flags: anyStateFlags | command.ConnectionCategory, Since: "7.0.0", Complexity: "O(n), n being the number of commands",
				Summary: "Returns the names of the commands.", Syntax: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]", Run: commandList,
			},
			{
				Name: "command|getkeys", Arity: -3, Flags: anyStateFlags | command.ConnectionCategory, Since: "2.8.13", Complexity: "O(n), n being the number of arguments",
				Summary: "Returns the keys that a command names.", Syntax: "command [arg [arg ...]]", Run: commandGetKeys,
			},
			{
				Name: "command|help", Arity: 2, Flags: anyStateFlags | command.ConnectionCategory, Since: "5.0.0", Complexity: "O(1)",
				Summary: "Lists the subcommands.", Run: command.Help,
			},
		},
	},
}

// commandCommand is COMMAND.
func commandCommand(c *command.Call) error {
	all := table.Commands
	c.Out.Array(len(all))
	for _, cmd := range all {
		describe(c, cmd)
	}
	return nil
}

// commandInfo is COMMAND INFO: a null array for an unknown command.
func commandInfo(c *command.Call) error {
	if len(c.Args) == 2 {
		return commandCommand(c)
	}
	c.Out.Array(len(c.Args) - 2)
	for _, name := range c.Args[2:] {
		if cmd := Lookup(string(name)); cmd != nil {
			describe(c, cmd)
		} else {
			c.Out.NullArray()
		}
	}
	return nil
}

// describe writes one command as COMMAND INFO does. Ten fields, as since Redis 7.0.
func describe(c *command.Call, cmd *command.Command) {
	first, last, step := cmd.KeySpan()
	c.Out.Array(10)
	c.Out.BulkString(cmd.Name)
	c.Out.Int(int64(cmd.Arity))
	simpleSet(c, cmd.Flags.Names())
	c.Out.Int(int64(first))
	c.Out.Int(int64(last))
	c.Out.Int(int64(step))
	simpleSet(c, cmd.Categories())
	c.Out.Array(0) // tips
	positions := slices.Concat(cmd.Keys, cmd.Channels)
	c.Out.Array(len(positions))
	for _, k := range positions {
		describeKeys(c, k)
	}
	c.Out.Array(len(cmd.Subcommands))
	for _, sub := range cmd.Subcommands {
		describe(c, sub)
	}
}

// simpleSet writes names as a set, which is an array in RESP2.
func simpleSet(c *command.Call, names []string) {
	c.Out.Set(len(names))
	for _, name := range names {
		c.Out.Simple(name)
	}
}

// describeKeys writes one key specification. A keyword's key is found by searching, all others by
// an index; after that comes a range, or a count.
func describeKeys(c *command.Call, k command.Keys) {
	out := c.Out
	out.Map(3)
	out.BulkString("flags")
	simpleSet(c, strings.Fields(k.Use))
	if k.Unknown {
		for _, part := range []string{"begin_search", "find_keys"} {
			out.BulkString(part)
			out.Map(2)
			out.BulkString("type")
			out.BulkString("unknown")
			out.BulkString("spec")
			out.Map(0)
		}
		return
	}
	out.BulkString("begin_search")
	out.Map(2)
	out.BulkString("type")
	if k.Keyword != "" {
		out.BulkString("keyword")
		out.BulkString("spec")
		out.Map(2)
		out.BulkString("keyword")
		out.BulkString(k.Keyword)
		out.BulkString("startfrom")
	} else {
		out.BulkString("index")
		out.BulkString("spec")
		out.Map(1)
		out.BulkString("index")
	}
	out.Int(int64(k.First))
	out.BulkString("find_keys")
	out.Map(2)
	out.BulkString("type")
	values := []struct {
		name  string
		value int
	}{{"lastkey", k.Last}, {"keystep", k.Step}, {"limit", 0}}
	if k.Counted {
		out.BulkString("keynum")
		values[0].name, values[0].value = "keynumidx", 0
		values[1].name, values[1].value = "firstkey", 1
		values[2].name, values[2].value = "keystep", 1
	} else {
		out.BulkString("range")
	}
	out.BulkString("spec")
	out.Map(len(values))
	for _, v := range values {
		out.BulkString(v.name)
		out.Int(int64(v.value))
	}
}

// commandDocs is COMMAND DOCS. Unknown names are left out.
func commandDocs(c *command.Call) error {
	var list []*command.Command
	if len(c.Args) == 2 {
		list = table.Commands
	}
	for _, name := range c.Args[2:] {
		if cmd := Lookup(string(name)); cmd != nil {
			list = append(list, cmd)
		}
	}
	documentAll(c, list)
	return nil
}

// documentAll writes commands as a map of their names.
func documentAll(c *command.Call, list []*command.Command) {
	c.Out.Map(len(list))
	for _, cmd := range list {
		c.Out.BulkString(cmd.Name)
		document(c, cmd)
	}
}

// document writes one command as COMMAND DOCS does: a map of those facts that it has. The number of
// facts comes first, so it is counted before.
func document(c *command.Call, cmd *command.Command) {
	arguments := cmd.Arguments()
	n := 4
	if len(arguments) > 0 {
		n++
	}
	if len(cmd.Subcommands) > 0 {
		n++
	}
	c.Out.Map(n)
	for _, pair := range [][2]string{
		{"summary", cmd.Summary}, {"since", cmd.Since}, {"group", string(cmd.Group)}, {"complexity", cmd.Complexity},
	} {
		c.Out.BulkString(pair[0])
		c.Out.BulkString(pair[1])
	}
	if len(arguments) > 0 {
		c.Out.BulkString("arguments")
		documentArguments(c, arguments)
	}
	if len(cmd.Subcommands) > 0 {
		c.Out.BulkString("subcommands")
		documentAll(c, cmd.Subcommands)
	}
}

// documentArguments writes the arguments of a command, or the choices of one of them.
func documentArguments(c *command.Call, list []command.Argument) {
	c.Out.Array(len(list))
	for _, a := range list {
		var flags []string
		if a.Optional {
			flags = append(flags, "optional")
		}
		if a.Multiple {
			flags = append(flags, "multiple")
		}
		n := 2
		for _, present := range []bool{a.Type == "key", a.Token != "", len(flags) > 0, len(a.Choices) > 0} {
			if present {
				n++
			}
		}
		c.Out.Map(n)
		c.Out.BulkString("name")
		c.Out.BulkString(a.Name)
		c.Out.BulkString("type")
		c.Out.BulkString(a.Type)
		if a.Type == "key" {
			c.Out.BulkString("key_spec_index")
			c.Out.Int(0)
		}
		if a.Token != "" {
			c.Out.BulkString("token")
			c.Out.BulkString(a.Token)
		}
		if len(flags) > 0 {
			c.Out.BulkString("flags")
			simpleSet(c, flags)
		}
		if len(a.Choices) > 0 {
			c.Out.BulkString("arguments")
			documentArguments(c, a.Choices)
		}
	}
}

// commandList is COMMAND LIST. There are no modules, so a filter by one finds nothing.
func commandList(c *command.Call) error {
	keep := func(*command.Command) bool { return true }
	switch {
	case len(c.Args) == 2:
	case len(c.Args) == 5 && c.Is(2, "filterby") && c.Is(3, "module"):
		keep = func(*command.Command) bool { return false }
	case len(c.Args) == 5 && c.Is(2, "filterby") && c.Is(3, "aclcat"):
		category := "@" + strings.ToLower(c.Key(4))
		keep = func(cmd *command.Command) bool { return slices.Contains(cmd.Categories(), category) }
	case len(c.Args) == 5 && c.Is(2, "filterby") && c.Is(3, "pattern"):
		pattern := strings.ToLower(c.Key(4))
		keep = func(cmd *command.Command) bool { return structures.Match(pattern, []byte(cmd.Name)) }
	default:
		return command.ErrSyntax
	}
	var names []string
	for _, cmd := range table.Commands {
		for _, one := range append([]*command.Command{cmd}, cmd.Subcommands...) {
			if keep(one) {
				names = append(names, one.Name)
			}
		}
	}
	return c.Names(names)
}

// commandGetKeys is COMMAND GETKEYS: the keys that the session would lock for a request, but of a
// keyword that stands more than once only the first, as in Redis. GEORADIUS itself obeys the last.
// Nothing is executed and no key is read.
func commandGetKeys(c *command.Call) error {
	inner := c.Args[2:]
	cmd := table.Find(inner[0])
	if cmd != nil && len(cmd.Subcommands) > 0 && len(inner) > 1 {
		cmd = cmd.Subcommand(inner[1])
	}
	switch {
	case cmd == nil:
		return command.Error("ERR Invalid command specified")
	case len(cmd.Keys) == 0:
		return command.Error("ERR The command has no key arguments")
	case !cmd.ArityFits(len(inner)):
		return command.Error("ERR Invalid number of arguments specified for command")
	}
	var keys []string
	for i := range cmd.Keys {
		k := &cmd.Keys[i]
		before := len(keys)
		keys = k.Append(keys, inner)
		if len(keys) == before && !k.Unknown && k.Keyword == "" {
			// Even of a command such as PFMERGE, which needs no more than its first key.
			return command.Error("ERR Invalid arguments specified for command")
		}
		if k.Keyword != "" {
			keys = keys[:min(len(keys), before+1)]
		}
	}
	return c.Names(keys)
}
