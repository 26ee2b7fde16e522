package command

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// What Redis says of the nodes of its radix tree is said here of a tree that has a hundred entries a node.

var streamInfoCommands = []*Command{
	{
		Name: "xinfo", Arity: -2, Flags: 0, Group: GroupStream,
		Subcommands: []*Command{
			{Name: "xinfo|consumers", Arity: 4, Flags: ReadOnly, Keys: keyOfGroup("RO access"), Run: xinfoConsumers},
			{Name: "xinfo|groups", Arity: 3, Flags: ReadOnly, Keys: keyOfGroup("RO access"), Run: xinfoGroups},
			HelpRow("xinfo"),
			{Name: "xinfo|stream", Arity: -3, Flags: ReadOnly, Keys: keyOfGroup("RO access"), Run: xinfoStream},
		},
	},
}

// xinfoStream is XINFO STREAM. The key is looked up before the words after it are read.
func xinfoStream(c *Call) error {
	s := c.Tx.Stream(c.Key(2))
	info, err := s.Info()
	if err != nil {
		return noKeyOr(err)
	}
	full, count, err := c.parseFull()
	if err != nil {
		return err
	}
	var ends [2][]db.StreamEntry // the first and the last entry
	if ends[0], err = s.Range(db.StreamID{}, db.MaxStreamID, 1); err == nil {
		ends[1], err = s.RangeReverse(db.StreamID{}, db.MaxStreamID, 1)
	}
	if err != nil {
		return err
	}
	first := db.StreamID{}
	if len(ends[0]) > 0 {
		first = ends[0][0].ID
	}
	const perNode = 100
	nodes := (info.Len + perNode - 1) / perNode
	facts := []Fact{
		{"length", info.Len}, {"radix-tree-keys", nodes}, {"radix-tree-nodes", nodes + 1}, {"last-generated-id", info.Last.String()},
		{"max-deleted-entry-id", info.Deleted.String()}, {"entries-added", info.Added}, {"recorded-first-entry-id", first.String()},
	}
	more := 3 // groups, first-entry and last-entry
	if full {
		more = 2 // entries and groups
	}
	c.Out.Map(len(facts) + more)
	c.facts(facts...)
	if full {
		c.Out.BulkString("entries")
		if err := c.entries(s, structures.StreamRange{To: db.MaxStreamID, Count: count}); err != nil {
			return err
		}
		c.Out.BulkString("groups")
		return c.fullGroups(s, count)
	}
	groups, err := s.CountGroups()
	if err != nil {
		return err
	}
	c.facts(Fact{"groups", groups})
	for i, name := range []string{"first-entry", "last-entry"} {
		c.Out.BulkString(name)
		if len(ends[i]) == 0 {
			c.Out.Null()
		} else {
			c.entry(ends[i][0])
		}
	}
	return nil
}

// parseFull reads FULL and its count, 10 by default and 0 for all; full says whether it is there.
func (c *Call) parseFull() (full bool, count int, err error) {
	switch {
	case len(c.Args) == 3:
		return false, 0, nil
	case !c.Args.Is(3, "full"), len(c.Args) == 5, len(c.Args) > 6, len(c.Args) == 6 && !c.Args.Is(4, "count"):
		return false, 0, ErrUnknownOrArity(c)
	case len(c.Args) == 4:
		return true, 10, nil
	}
	n, err := c.Args.ParseInt(5)
	if n < 0 {
		n = 10
	}
	return true, clampInt(n), err
}
