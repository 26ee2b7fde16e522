package introspect

import (
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
)

// handlers are the handlers of COMMAND, for the table that they return.
type handlers func() *command.Table

const flags = command.Describes | command.Loading | command.Stale | command.ConnectionCategory

// Command is COMMAND with its subcommands, for the table that table returns once the table is complete.
func Command(table func() *command.Table) *command.Command {
	h := handlers(table)
	return &command.Command{
		Name: "command", Arity: -1, Flags: flags, Group: command.GroupServer, Run: h.all,
		Subcommands: []*command.Command{
			{Name: "command|count", Arity: 2, Flags: flags,
				Run: func(c *command.Call) error { c.Out.Int(int64(len(h().Commands))); return nil }},
			{Name: "command|info", Arity: -2, Flags: flags, Run: h.info},
			{Name: "command|docs", Arity: -2, Flags: flags, Run: h.docs},
			{Name: "command|list", Arity: -2, Flags: flags, Run: h.list},
			{Name: "command|getkeys", Arity: -3, Flags: flags, Run: h.getKeys},
			{Name: "command|getkeysandflags", Arity: -3, Flags: flags, Run: h.getKeysAndFlags},
			{Name: "command|help", Arity: 2, Flags: flags, Run: command.Help},
		},
	}
}

// all is COMMAND.
func (h handlers) all(c *command.Call) error { return c.Reply(described(h().Commands)) }

// info is COMMAND INFO: a null array for an unknown command.
func (h handlers) info(c *command.Call) error {
	if len(c.Args) == 2 {
		return h.all(c)
	}
	c.Out.Array(len(c.Args) - 2)
	for i, name := range c.Args[2:] {
		if err := c.GoesOn(i); err != nil || c.Out.Exceeded() {
			return err
		}
		if cmd := h().Lookup(string(name)); cmd != nil {
			c.Reply(describe(cmd))
		} else {
			c.Out.NullArray()
		}
	}
	return nil
}

// described are commands as COMMAND INFO shows them.
func described(list []*command.Command) []any {
	all := make([]any, len(list))
	for i, cmd := range list {
		all[i] = describe(cmd)
	}
	return all
}

// describe is one command as COMMAND INFO shows it: ten fields, as since Redis 7.0.
func describe(cmd *command.Command) []any {
	first, last, step := cmd.KeySpan()
	var positions []any
	for _, k := range slices.Concat(cmd.Keys, cmd.Channels) {
		positions = append(positions, keySpecification(k))
	}
	return []any{
		cmd.Name, cmd.Arity, command.SimpleSet(cmd.Flags.Names()), first, last, step, command.SimpleSet(cmd.Categories()), cmd.Tips,
		positions, described(cmd.Subcommands),
	}
}

// keySpecification says how a client finds a run of keys: where to begin, by an index or by
// searching for a word, and what to take from there, a range or as many as a number says.
func keySpecification(k command.Keys) []command.Fact {
	kind := func(name string, spec ...command.Fact) []command.Fact {
		return []command.Fact{{Name: "type", Value: name}, {Name: "spec", Value: spec}}
	}
	begin := kind("index", command.Fact{Name: "index", Value: k.First})
	find := kind("range", command.Fact{Name: "lastkey", Value: k.Last}, command.Fact{Name: "keystep", Value: k.Step}, command.Fact{Name: "limit", Value: 0})
	switch {
	case k.Unknown:
		begin, find = kind("unknown"), kind("unknown")
	case k.Keyword != "":
		if k.Half {
			find = kind("range", command.Fact{Name: "lastkey", Value: -1}, command.Fact{Name: "keystep", Value: 1}, command.Fact{Name: "limit", Value: 2})
		}
		begin = kind("keyword", command.Fact{Name: "keyword", Value: k.Keyword}, command.Fact{Name: "startfrom", Value: k.First})
	case k.Counted:
		find = kind("keynum", command.Fact{Name: "keynumidx", Value: 0}, command.Fact{Name: "firstkey", Value: 1}, command.Fact{Name: "keystep", Value: max(k.Step, 1)})
	}
	return []command.Fact{{Name: "flags", Value: command.SimpleSet(strings.Fields(k.Use))}, {Name: "begin_search", Value: begin}, {Name: "find_keys", Value: find}}
}

// docs is COMMAND DOCS. What is no command is left out. The description of one command is made, and written, after the
// other: it takes a thousand times the memory of a name.
func (h handlers) docs(c *command.Call) error {
	var list []*command.Command
	if len(c.Args) == 2 {
		list = h().Commands
	}
	for _, name := range c.Args[2:] {
		if cmd := h().Lookup(string(name)); cmd != nil {
			list = append(list, cmd)
		}
	}
	c.Out.Map(len(list))
	for i, cmd := range list {
		if err := c.GoesOn(i); err != nil || c.Out.Exceeded() {
			return err
		}
		c.Out.BulkString(cmd.Name)
		c.Reply(documentation(cmd))
	}
	return nil
}

// documented are subcommands as a map of their names. A fact that a command does not have is left out.
func documented(list []*command.Command) []command.Fact {
	all := []command.Fact{}
	for _, cmd := range list {
		all = append(all, command.Fact{Name: cmd.Name, Value: documentation(cmd)})
	}
	return all
}

// documentation is one of them.
func documentation(cmd *command.Command) []command.Fact {
	facts := []command.Fact{
		{Name: "summary", Value: cmd.Summary}, {Name: "since", Value: cmd.Since}, {Name: "group", Value: string(cmd.Group)},
		{Name: "complexity", Value: cmd.Complexity},
	}
	if arguments := cmd.Arguments(); len(arguments) > 0 {
		facts = append(facts, command.Fact{Name: "arguments", Value: documentedArguments(arguments)})
	}
	if len(cmd.Subcommands) > 0 {
		facts = append(facts, command.Fact{Name: "subcommands", Value: documented(cmd.Subcommands)})
	}
	return facts
}

// documentedArguments are the arguments of a command, or the choices of one of them.
func documentedArguments(list []command.Argument) (all []any) {
	for _, a := range list {
		facts := []command.Fact{{Name: "name", Value: a.Name}, {Name: "type", Value: a.Type}}
		add := func(present bool, name string, value any) {
			if present {
				facts = append(facts, command.Fact{Name: name, Value: value})
			}
		}
		var flags command.SimpleSet
		if a.Optional {
			flags = append(flags, "optional")
		}
		if a.Multiple {
			flags = append(flags, "multiple")
		}
		add(a.Type == "key", "key_spec_index", 0)
		add(a.Token != "", "token", a.Token)
		add(len(flags) > 0, "flags", flags)
		add(len(a.Choices) > 0, "arguments", documentedArguments(a.Choices))
		all = append(all, facts)
	}
	return all
}

// list is COMMAND LIST. There are no modules, so a filter by one finds nothing.
func (h handlers) list(c *command.Call) error {
	keep := func(*command.Command) bool { return true }
	switch {
	case len(c.Args) == 2:
	case len(c.Args) == 5 && c.Args.Is(2, "filterby") && c.Args.Is(3, "module"):
		keep = func(*command.Command) bool { return false }
	case len(c.Args) == 5 && c.Args.Is(2, "filterby") && c.Args.Is(3, "aclcat"):
		category := "@" + strings.ToLower(c.Key(4))
		keep = func(cmd *command.Command) bool { return slices.Contains(cmd.Categories(), category) }
	case len(c.Args) == 5 && c.Args.Is(2, "filterby") && c.Args.Is(3, "pattern"):
		pattern := strings.ToLower(c.Key(4))
		keep = func(cmd *command.Command) bool { return c.Matches(pattern, []byte(cmd.Name)) }
	default:
		return command.ErrSyntax
	}
	var names []string
	for _, cmd := range h().Commands {
		for _, one := range append([]*command.Command{cmd}, cmd.Subcommands...) {
			if keep(one) {
				names = append(names, one.Name)
			}
		}
	}
	return c.Names(names)
}

// getKeys is COMMAND GETKEYS.
func (h handlers) getKeys(c *command.Call) error {
	keys, _, err := h.namedKeys(c.Args[2:])
	if err != nil {
		return err
	}
	return c.Names(keys)
}

// getKeysAndFlags is COMMAND GETKEYSANDFLAGS: each key with the flags of its specification.
func (h handlers) getKeysAndFlags(c *command.Call) error {
	keys, uses, err := h.namedKeys(c.Args[2:])
	if err != nil {
		return err
	}
	c.Out.Array(len(keys))
	for i, key := range keys {
		if err := c.GoesOn(i); err != nil || c.Out.Exceeded() {
			return err
		}
		c.Out.Array(2)
		c.Out.BulkString(key)
		c.Reply(command.SimpleSet(strings.Fields(uses[i])))
	}
	return nil
}

// namedKeys are the keys that the session would lock for a request, and what the command does with
// each: of a keyword that stands more than once only the first, as in Redis. GEORADIUS itself obeys the
// last. Nothing is executed and no key is read.
func (h handlers) namedKeys(request [][]byte) (keys, uses []string, err error) {
	cmd := h().Find(request[0])
	if cmd != nil && len(cmd.Subcommands) > 0 && len(request) > 1 {
		cmd = cmd.Subcommand(request[1])
	}
	switch {
	case cmd == nil:
		return nil, nil, command.Error("ERR Invalid command specified")
	case len(cmd.Keys) == 0:
		return nil, nil, command.Error("ERR The command has no key arguments")
	case !cmd.ArityFits(len(request)):
		return nil, nil, command.Error("ERR Invalid number of arguments specified for command")
	}
	for i := range cmd.Keys {
		k := &cmd.Keys[i]
		before := len(keys)
		keys = k.Append(keys, request)
		if len(keys) == before && !k.Unknown && (k.Keyword == "" || k.Half) && cmd.Flags&command.NoMandatoryKeys == 0 {
			// Even of a command such as PFMERGE, which needs no more than its first key.
			return nil, nil, command.Error("ERR Invalid arguments specified for command")
		}
		if k.Keyword != "" && !k.Half {
			keys = keys[:min(len(keys), before+1)]
		}
		for range keys[before:] {
			uses = append(uses, k.UseBy(request))
		}
	}
	return keys, uses, nil
}
