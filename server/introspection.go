package server

import (
	"slices"
	"strings"

	"github.com/stavedb/stave/structures"
)

var introspectionCommands = []*Command{
	{
		Name: "command", Arity: -1, Flags: Loading | Stale | connectionCategory, Group: GroupServer, Since: "2.8.13",
		Complexity: "O(n), n being the number of commands", Summary: "Describes all commands.", run: commandCommand,
		Subcommands: []*Command{
			{
				Name: "command|count", Arity: 2, Flags: Loading | Stale | connectionCategory, Since: "2.8.13", Complexity: "O(1)",
				Summary: "Returns the number of commands.",
				run:     func(c *call) error { c.out.Int(int64(len(table.Commands))); return nil },
			},
			{
				Name: "command|info", Arity: -2, Flags: Loading | Stale | connectionCategory, Since: "2.8.13", Complexity: "O(n), n being the number of commands given",
				Summary: "Describes some commands, or all.", Syntax: "[command-name [command-name ...]]", run: commandInfo,
			},
			{
				Name: "command|docs", Arity: -2, Flags: Loading | Stale | connectionCategory, Since: "7.0.0", Complexity: "O(n), n being the number of commands given",
				Summary: "Documents some commands, or all.", Syntax: "[command-name [command-name ...]]", run: commandDocs,
			},
			{
				Name: "command|list", Arity: -2, Flags: Loading | Stale | connectionCategory, Since: "7.0.0", Complexity: "O(n), n being the number of commands",
				Summary: "Returns the names of the commands.", Syntax: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]", run: commandList,
			},
			{
				Name: "command|getkeys", Arity: -3, Flags: Loading | Stale | connectionCategory, Since: "2.8.13", Complexity: "O(n), n being the number of arguments",
				Summary: "Returns the keys that a command names.", Syntax: "command [arg [arg ...]]", run: commandGetKeys,
			},
			{
				Name: "command|help", Arity: 2, Flags: Loading | Stale | connectionCategory, Since: "5.0.0", Complexity: "O(1)",
				Summary: "Lists the subcommands.", run: containerHelp,
			},
		},
	},
}

func commandCommand(c *call) error {
	all := table.Commands
	c.out.Array(len(all))
	for _, command := range all {
		describe(c, command)
	}
	return nil
}

func commandInfo(c *call) error {
	if len(c.args) == 2 {
		return commandCommand(c)
	}
	c.out.Array(len(c.args) - 2)
	for _, name := range c.args[2:] {
		if command := Lookup(string(name)); command != nil {
			describe(c, command)
		} else {
			c.out.NullArray()
		}
	}
	return nil
}

// describe writes one command as COMMAND INFO does.
func describe(c *call, command *Command) {
	first, last, step := command.keySpan()
	c.out.Array(10)
	c.out.BulkString(command.Name)
	c.out.Int(int64(command.Arity))
	simpleSet(c, command.Flags.Names())
	c.out.Int(int64(first))
	c.out.Int(int64(last))
	c.out.Int(int64(step))
	simpleSet(c, command.Categories())
	c.out.Array(0) // tips
	positions := slices.Concat(command.Keys, command.Channels)
	c.out.Array(len(positions))
	for _, k := range positions {
		describeKeys(c, k)
	}
	c.out.Array(len(command.Subcommands))
	for _, sub := range command.Subcommands {
		describe(c, sub)
	}
}

func simpleSet(c *call, names []string) {
	c.out.Set(len(names))
	for _, name := range names {
		c.out.Simple(name)
	}
}

// describeKeys writes one key specification.
func describeKeys(c *call, k Keys) {
	out := c.out
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

func commandDocs(c *call) error {
	var list []*Command
	if len(c.args) == 2 {
		list = table.Commands
	}
	for _, name := range c.args[2:] {
		if command := Lookup(string(name)); command != nil {
			list = append(list, command)
		}
	}
	documentAll(c, list)
	return nil
}

func documentAll(c *call, list []*Command) {
	c.out.Map(len(list))
	for _, command := range list {
		c.out.BulkString(command.Name)
		document(c, command)
	}
}

func document(c *call, command *Command) {
	arguments := command.Arguments()
	n := 4
	if len(arguments) > 0 {
		n++
	}
	if len(command.Subcommands) > 0 {
		n++
	}
	c.out.Map(n)
	for _, pair := range [][2]string{
		{"summary", command.Summary}, {"since", command.Since}, {"group", string(command.Group)}, {"complexity", command.Complexity},
	} {
		c.out.BulkString(pair[0])
		c.out.BulkString(pair[1])
	}
	if len(arguments) > 0 {
		c.out.BulkString("arguments")
		documentArguments(c, arguments)
	}
	if len(command.Subcommands) > 0 {
		c.out.BulkString("subcommands")
		documentAll(c, command.Subcommands)
	}
}

func documentArguments(c *call, list []Argument) {
	c.out.Array(len(list))
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
		c.out.Map(n)
		c.out.BulkString("name")
		c.out.BulkString(a.Name)
		c.out.BulkString("type")
		c.out.BulkString(a.Type)
		if a.Type == "key" {
			c.out.BulkString("key_spec_index")
			c.out.Int(0)
		}
		if a.Token != "" {
			c.out.BulkString("token")
			c.out.BulkString(a.Token)
		}
		if len(flags) > 0 {
			c.out.BulkString("flags")
			simpleSet(c, flags)
		}
		if len(a.Choices) > 0 {
			c.out.BulkString("arguments")
			documentArguments(c, a.Choices)
		}
	}
}

func commandList(c *call) error {
	keep := func(*Command) bool { return true }
	switch {
	case len(c.args) == 2:
	case len(c.args) == 5 && c.is(2, "filterby") && c.is(3, "module"):
		keep = func(*Command) bool { return false }
	case len(c.args) == 5 && c.is(2, "filterby") && c.is(3, "aclcat"):
		category := "@" + strings.ToLower(c.key(4))
		keep = func(command *Command) bool { return slices.Contains(command.Categories(), category) }
	case len(c.args) == 5 && c.is(2, "filterby") && c.is(3, "pattern"):
		pattern := strings.ToLower(c.key(4))
		keep = func(command *Command) bool { return structures.Match(pattern, []byte(command.Name)) }
	default:
		return errSyntax
	}
	var names []string
	for _, command := range table.Commands {
		for _, one := range append([]*Command{command}, command.Subcommands...) {
			if keep(one) {
				names = append(names, one.Name)
			}
		}
	}
	c.out.Array(len(names))
	for _, name := range names {
		c.out.BulkString(name)
	}
	return nil
}

func commandGetKeys(c *call) error {
	inner := c.args[2:]
	command := table.Find(inner[0])
	if command != nil && len(command.Subcommands) > 0 && len(inner) > 1 {
		command = command.subcommand(inner[1])
	}
	switch {
	case command == nil:
		return replyError("ERR Invalid command specified")
	case len(command.Keys) == 0:
		return replyError("ERR The command has no key arguments")
	case !command.arityFits(len(inner)):
		return replyError("ERR Invalid number of arguments specified for command")
	}
	var keys []string
	for i := range command.Keys {
		k := &command.Keys[i]
		before := len(keys)
		keys = k.append(keys, inner)
		if len(keys) == before && !k.Unknown && k.Keyword == "" {
			// Even of a command such as PFMERGE, which needs no more than its first key.
			return replyError("ERR Invalid arguments specified for command")
		}
	}
	c.out.Array(len(keys))
	for _, key := range keys {
		c.out.BulkString(key)
	}
	return nil
}
