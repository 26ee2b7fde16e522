package scripting

import (
	"errors"
	"strings"

	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/script"
)

const changesLibraries = command.Write | command.NoScript

// functionCommand is FUNCTION.
func functionCommand(of source) *command.Command {
	return &command.Command{
		Name: "function", Arity: -2,
		Subcommands: []*command.Command{
			{Name: "function|load", Arity: -3, Flags: changesLibraries | command.DenyOOM, Run: of.on(functionLoad)},
			{Name: "function|delete", Arity: 3, Flags: changesLibraries, Run: of.on(functionDelete)},
			{Name: "function|flush", Arity: -2, Flags: changesLibraries, Run: of.on(functionFlush)},
			{Name: "function|list", Arity: -2, Flags: command.Describes | command.NoScript, Run: of.on(functionList)},
			{Name: "function|dump", Arity: 2, Flags: command.Describes | command.NoScript, Run: of.on(functionDump)},
			{Name: "function|restore", Arity: -3, Flags: changesLibraries | command.DenyOOM, Run: of.on(functionRestore)},
			{Name: "function|stats", Arity: 2, Flags: command.Describes | command.NoScript | command.AllowBusy, Run: of.on(functionStats)},
			{Name: "function|kill", Arity: 2, Flags: command.NoScript | command.AllowBusy,
				Run: of.on(func(s *Session, c *command.Call) error { return c.Done(s.Runs.Kill(true)) })},
			command.HelpRow("function"),
		},
	}
}

// functionLoad is FUNCTION LOAD.
func functionLoad(s *Session, c *command.Call) error {
	replace := false
	last := len(c.Args) - 1
	for i := 2; i < last; i++ {
		if !c.Args.Is(i, "replace") {
			return command.Error("ERR Unknown option given: " + command.Quoted(c.Arg(i)))
		}
		replace = true
	}
	source := string(c.Arg(last))
	if name, err := script.LibraryName(source); err == nil && !replace && s.Set().Has(name) {
		return ErrLibraryExists(name) // its code is not executed
	}
	lib, err := s.Load(source)
	if err != nil {
		return err
	}
	err = s.Change(c, func(set *Set) ([]string, error) {
		s.Libraries.Offer(lib)
		return []string{lib.Name}, set.Add(lib, replace, nil)
	})
	if err != nil {
		return err
	}
	return c.Reply(lib.Name)
}

// functionDelete is FUNCTION DELETE.
func functionDelete(s *Session, c *command.Call) error {
	name := string(c.Arg(2))
	return c.Done(s.Change(c, func(set *Set) ([]string, error) {
		if !set.Has(name) {
			return nil, errLibraryUnknown
		}
		set.Remove(name)
		return []string{name}, nil
	}))
}

// functionFlush is FUNCTION FLUSH. Both of its modes do the same: memory is freed in the background.
func functionFlush(s *Session, c *command.Call) error {
	switch {
	case len(c.Args) > 3:
		return command.ErrUnknownOrArity(c)
	case len(c.Args) == 3 && !c.Args.Is(2, "sync") && !c.Args.Is(2, "async"):
		return command.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
	}
	return c.Done(s.Change(c, func(set *Set) ([]string, error) { return set.Clear(), nil }))
}

// functionList is FUNCTION LIST.
func functionList(s *Session, c *command.Call) error {
	withCode, pattern, filtered := false, "", false
	for i := 2; i < len(c.Args); i++ {
		switch {
		case !withCode && c.Args.Is(i, "withcode"):
			withCode = true
		case !filtered && c.Args.Is(i, "libraryname"):
			if i++; i == len(c.Args) {
				return command.Error("ERR library name argument was not given")
			}
			pattern, filtered = strings.ToLower(string(c.Arg(i))), true
		default:
			return command.Error("ERR Unknown argument " + command.Quoted(c.Arg(i)))
		}
	}
	set, out := s.Set(), c.Out
	at, n := out.Begin(), 0
	for _, name := range set.Names() {
		if filtered && !c.Matches(pattern, []byte(strings.ToLower(name))) {
			continue
		}
		n++
		if err := c.Reply(libraryFacts(set.Libraries[name], withCode)); err != nil {
			return err
		}
		if out.Exceeded() {
			break
		}
	}
	out.EndArray(at, n)
	return nil
}

// libraryFacts are a library in the reply of FUNCTION LIST.
func libraryFacts(lib *script.Library, withCode bool) []command.Fact {
	functions := make([]any, len(lib.Functions))
	for i, f := range lib.Functions {
		var description any
		if f.Described {
			description = f.Description
		}
		functions[i] = []command.Fact{{Name: "name", Value: f.Name}, {Name: "description", Value: description}, {Name: "flags", Value: command.SimpleSet(f.Flags.Names())}}
	}
	facts := []command.Fact{{Name: "library_name", Value: lib.Name}, {Name: "engine", Value: "LUA"}, {Name: "functions", Value: functions}}
	if withCode {
		facts = append(facts, command.Fact{Name: "library_code", Value: lib.Source})
	}
	return facts
}

// functionDump is FUNCTION DUMP.
func functionDump(s *Session, c *command.Call) error {
	set := s.Set()
	var sources []string
	for _, name := range set.Names() {
		sources = append(sources, set.Libraries[name].Source)
	}
	c.Out.Bulk(rdb.EncodeFunctions(sources))
	return nil
}

// functionRestore is FUNCTION RESTORE.
func functionRestore(s *Session, c *command.Call) error {
	flush, replace := false, false
	if len(c.Args) > 4 {
		return command.ErrUnknownOrArity(c)
	}
	if len(c.Args) == 4 {
		flush, replace = c.Args.Is(3, "flush"), c.Args.Is(3, "replace")
		if !flush && !replace && !c.Args.Is(3, "append") {
			return command.Error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
		}
	}
	given, err := s.restoredLibraries(c.Arg(2))
	if err != nil {
		return err
	}
	return c.Done(s.Change(c, func(set *Set) (changed []string, err error) {
		if flush {
			changed = set.Clear()
		}
		for _, lib := range given { // first all of those go that are replaced, as their functions may be in others now
			if set.Has(lib.Name) && !replace {
				return nil, command.Errorf("ERR Library %s already exists", lib.Name)
			}
			set.Remove(lib.Name)
		}
		for _, lib := range given {
			if err := set.Add(lib, false, nil); err != nil {
				return nil, err
			}
			changed = append(changed, lib.Name)
		}
		s.Libraries.Offer(given...)
		return changed, nil
	}))
}

// restoredLibraries loads the libraries of a payload, which must fit together.
func (s *Session) restoredLibraries(payload []byte) (list []*script.Library, err error) {
	sources, err := rdb.DecodeFunctions(payload)
	switch {
	case errors.Is(err, rdb.ErrPreRelease):
		return nil, command.Error("ERR Pre-GA function format not supported")
	case errors.Is(err, rdb.ErrNoFunctions):
		return nil, command.Error("ERR given type is not a function")
	case errors.Is(err, rdb.ErrLibraryData):
		return nil, command.Error("ERR Failed loading library data")
	case err != nil:
		return nil, command.Error("ERR DUMP payload version or checksum are wrong")
	}
	together := NewSet()
	for _, source := range sources {
		lib, err := s.Load(source)
		if err == nil {
			err = together.Add(lib, false, nil)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, lib)
	}
	return list, nil
}

// functionStats is FUNCTION STATS.
func functionStats(s *Session, c *command.Call) error {
	var running any
	s.Runs.longest(func(r *Run) {
		if r != nil {
			running = []command.Fact{
				{Name: "name", Value: r.Script.Name}, {Name: "command", Value: r.Call.Args.Strings(0)}, {Name: "duration_ms", Value: r.lasted().Milliseconds()},
			}
		}
	})
	set := s.Set()
	return c.Reply([]command.Fact{
		{Name: "running_script", Value: running},
		{Name: "engines", Value: []command.Fact{{Name: "LUA", Value: []command.Fact{
			{Name: "libraries_count", Value: len(set.Libraries)}, {Name: "functions_count", Value: len(set.Functions)},
		}}}},
	})
}

const errLibraryUnknown command.Error = "ERR Library not found"
