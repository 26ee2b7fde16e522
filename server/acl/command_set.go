package acl

import (
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
)

// categories are all that ACL CAT lists, in its order. Some have no command yet.
var categories = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream", "pubsub",
	"admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
}

// Categories returns the names of the categories, without the "@".
func Categories() []string { return slices.Clone(categories) }

// commandSet is a set of commands, a bit for each command.Command.Index.
type commandSet []uint64

func newCommandSet(t *command.Table) commandSet { return make(commandSet, (t.Size+63)/64) }

func (s commandSet) has(c *command.Command) bool { return s[c.Index/64]&(1<<(c.Index%64)) != 0 }

// put adds or removes a command, and the subcommands of a container.
func (s commandSet) put(c *command.Command, in bool) {
	bit := uint64(1) << (c.Index % 64)
	if in {
		s[c.Index/64] |= bit
	} else {
		s[c.Index/64] &^= bit
	}
	for _, sub := range c.Subcommands {
		s.put(sub, in)
	}
}

// putAll adds or removes all commands, those that the table does not have yet among them.
func (s commandSet) putAll(in bool) {
	for i := range s {
		s[i] = 0
		if in {
			s[i] = ^uint64(0)
		}
	}
}

// InCategory returns the commands and subcommands of a category, given without the "@" in any case. ok is false for a
// category that does not exist.
func InCategory(t *command.Table, category string) (list []*command.Command, ok bool) {
	category = strings.ToLower(category)
	if !slices.Contains(categories, category) {
		return nil, false
	}
	for _, c := range t.Commands {
		for _, each := range append([]*command.Command{c}, c.Subcommands...) {
			if slices.Contains(each.Categories(), "@"+category) {
				list = append(list, each)
			}
		}
	}
	return list, true
}
