package acl

import (
	"maps"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
)

// access is what a key pattern allows.
type access uint8

const (
	read access = 1 << iota
	write
)

// keyPattern is a pattern of keys, and what may be done with them.
type keyPattern struct {
	pattern string
	access  access
}

// String is the rule that gives the pattern.
func (p keyPattern) String() string {
	switch p.access {
	case read | write:
		return "~" + p.pattern
	case read:
		return "%R~" + p.pattern
	}
	return "%W~" + p.pattern
}

// selector is one set of rules: a request is allowed if one selector of its user allows all of it. It does not change
// once it belongs to Rules.
type selector struct {
	allCommands bool // nothing has been taken away since +@all: the set need not be asked
	allKeys     bool
	allChannels bool
	newCommands bool // the last word on all commands was +@all: it decides how the rules are described
	commands    commandSet
	firstArgs   map[int][]string // by command.Command.Index: values of argument 1 with which a command is allowed that is not in commands
	commandText string           // the rules of commands since +@all or -@all
	keys        []keyPattern
	channels    []string
}

func newSelector(t *command.Table) *selector { return &selector{commands: newCommandSet(t)} }

func (s *selector) clone() *selector {
	c := *s
	c.commands = slices.Clone(s.commands)
	c.keys = slices.Clone(s.keys)
	c.channels = slices.Clone(s.channels)
	c.firstArgs = maps.Clone(s.firstArgs)
	for i, list := range c.firstArgs {
		c.firstArgs[i] = slices.Clone(list)
	}
	return &c
}

// isUnlimited says whether the selector allows everything.
func (s *selector) isUnlimited() bool { return s.allCommands && s.allKeys && s.allChannels }

// setAllCommands is +@all and -@all.
func (s *selector) setAllCommands(in bool) {
	s.commands.putAll(in)
	s.allCommands, s.newCommands, s.commandText, s.firstArgs = in, in, "", nil
}

// setCommand is +name and -name.
func (s *selector) setCommand(c *command.Command, in bool) {
	s.commands.put(c, in)
	s.allCommands = s.allCommands && in
	delete(s.firstArgs, c.Index)
	for _, sub := range c.Subcommands {
		delete(s.firstArgs, sub.Index)
	}
}

// allowFirstArg is +name|argument of a command that has no subcommands.
func (s *selector) allowFirstArg(c *command.Command, arg string) {
	if s.firstArgs == nil {
		s.firstArgs = make(map[int][]string)
	}
	same := func(other string) bool { return strings.EqualFold(other, arg) }
	if list := s.firstArgs[c.Index]; !slices.ContainsFunc(list, same) {
		s.firstArgs[c.Index] = append(list, arg)
	}
}

// noteCommandRule keeps a rule of commands for the description: it takes the place of an earlier one of the same name,
// and of those of its subcommands.
func (s *selector) noteCommandRule(name string, in bool) {
	name = strings.ToLower(name)
	sign := "-"
	if in {
		sign = "+"
	}
	kept := slices.DeleteFunc(strings.Fields(s.commandText), func(rule string) bool {
		return rule[1:] == name || strings.HasPrefix(rule[1:], name+"|")
	})
	s.commandText = strings.Join(append(kept, sign+name), " ")
}

// addKeys adds a pattern, or more access to one that is there.
func (s *selector) addKeys(p keyPattern) {
	for i := range s.keys {
		if s.keys[i].pattern == p.pattern {
			s.keys[i].access |= p.access
			return
		}
	}
	s.keys = append(s.keys, p)
}

// addChannels adds a pattern of channels.
func (s *selector) addChannels(pattern string) {
	if !slices.Contains(s.channels, pattern) {
		s.channels = append(s.channels, pattern)
	}
}
