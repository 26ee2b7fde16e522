package server

import (
	"errors"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/compiled"
	"github.com/stavedb/stave/server/script"
)

// The commands about functions; package compiled has the libraries, script_run.go the execution, package script the language.

const (
	functionSyntax = "function numkeys [key [key ...]] [arg [arg ...]]"
	functionSince  = "7.0.0"
	functionCost   = "Depends on the function that is executed"
	functionWrites = command.Write | command.NoScript
)

// functionCommands call functions and keep libraries of them.
var functionCommands = command.InGroup(command.GroupScripting, []*command.Command{
	{Name: "fcall", Arity: -3, Flags: evalFlags, Keys: scriptKeys("RW access update"), Since: functionSince, Complexity: functionCost,
		Summary: "Calls a function of a library as one atomic commit.", Syntax: functionSyntax, Run: onSession(fcallCommand)},
	{Name: "fcall_ro", Arity: -3, Flags: evalFlags | command.ReadOnly, Keys: scriptKeys("RO access"), Since: functionSince, Complexity: functionCost,
		Summary: "Calls a function that writes nothing.", Syntax: functionSyntax, Run: onSession(fcallCommand)},
	{
		Name: "function", Arity: -2, Since: functionSince, Complexity: "Depends on the subcommand",
		Summary: "A container for commands about functions.", Subcommands: functionSubcommands,
	},
})

var functionSubcommands = []*command.Command{
	{Name: "function|load", Arity: -3, Flags: functionWrites | command.DenyOOM, Since: functionSince, Complexity: "O(1), and the time of the library's own code",
		Summary: "Loads a library, keeps it in the store and returns its name.", Syntax: "[REPLACE] function-code", Run: onSession(functionLoad)},
	{Name: "function|delete", Arity: 3, Flags: functionWrites, Since: functionSince, Complexity: "O(n), n being the number of functions",
		Summary: "Deletes a library with its functions.", Syntax: "library-name", Run: onSession(functionDelete)},
	{Name: "function|flush", Arity: -2, Flags: functionWrites, Since: functionSince, Complexity: "O(n), n being the number of functions",
		Summary: "Deletes all libraries.", Syntax: "[ASYNC | SYNC]", Run: onSession(functionFlush)},
	{Name: "function|list", Arity: -2, Flags: command.NoScript, Since: functionSince, Complexity: "O(n), n being the number of functions",
		Summary: "Lists libraries, in order of their names.", Syntax: "[LIBRARYNAME library-name-pattern] [WITHCODE]", Run: onSession(functionList)},
	{Name: "function|dump", Arity: 2, Flags: command.NoScript, Since: functionSince, Complexity: "O(n), n being the length of all libraries",
		Summary: "Returns all libraries in the serialized form of Redis 7.", Run: onSession(functionDump)},
	{Name: "function|restore", Arity: -3, Flags: functionWrites | command.DenyOOM, Since: functionSince, Complexity: "O(n), n being the number of functions",
		Summary: "Loads the libraries that FUNCTION DUMP has returned.", Syntax: "serialized-value [FLUSH | APPEND | REPLACE]", Run: onSession(functionRestore)},
	{Name: "function|stats", Arity: 2, Flags: command.NoScript | command.AllowBusy, Since: functionSince, Complexity: "O(1)",
		Summary: "Shows the function that has run for longest, and how many functions there are.", Run: onSession(functionStats)},
	{Name: "function|kill", Arity: 2, Flags: command.NoScript | command.AllowBusy, Since: functionSince, Complexity: "O(1)",
		Summary: "Stops the functions that run for long and have written nothing.",
		Run:     onSession(func(s *Session, c *command.Call) error { return c.Done(s.server.scripts.kill(true)) })},
	command.HelpRow("function", functionSince),
}

// fcallCommand is FCALL and FCALL_RO.
func fcallCommand(s *Session, c *command.Call) error {
	f := s.libraries().Functions[strings.ToLower(string(c.Arg(1)))]
	if f == nil {
		return errFunctionUnknown
	}
	n, ok := number.ParseInt(c.Arg(2))
	rest := c.Args[3:]
	switch {
	case !ok:
		return command.Error("ERR Bad number of keys provided")
	case n > int64(len(rest)):
		return errTooFewKeys
	case n < 0:
		return errNegativeKeys
	}
	r := &scriptRun{call: c, needs: &f.Needs, isFunction: true}
	if err := s.obeyFlags(r, f.Flags); err != nil {
		return err
	}
	r.run.Name, r.run.Keys, r.run.Args = f.Name, rest[:n], rest[n:]
	r.execute = func(run *script.Run, out *resp.Writer) error {
		return s.server.scripts.engine.RunFunction(f.Function, run, out)
	}
	return s.runScript(r)
}

// obeyFlags refuses a run that its flags do not allow, and notes what they do.
func (s *Session) obeyFlags(r *scriptRun, flags script.Flags) error {
	readOnly := r.call.Command.Flags&command.ReadOnly != 0
	r.readOnly = readOnly || flags&script.NoWrites != 0
	r.mayGrow = flags&script.AllowOOM != 0
	r.oneSlot = s.server.options.Cluster && flags&script.AllowCrossSlotKeys == 0
	switch {
	case s.server.options.Cluster && flags&script.NoCluster != 0:
		return errFlagNoCluster
	case readOnly && flags&script.NoWrites == 0:
		return errFlagWrites
	case flags&(script.NoWrites|script.AllowOOM) == 0 && s.server.memoryIsShort(r.call.Tx == nil):
		return errOutOfMemory
	}
	return nil
}

// changeLibraries executes a command that changes libraries. change works on a copy of those that the session sees, and names
// those that it has changed. It runs with all keys locked, so that one change comes after the other, but it is short: code of libraries has run
// before.
func (s *Session) changeLibraries(c *command.Call, change func(set *compiled.Set) (changed []string, err error)) error {
	body := func(tx *db.Tx) error {
		set := s.libraries().Clone()
		changed, err := change(set)
		if err != nil {
			return err
		}
		for _, name := range changed {
			source := ""
			if lib := set.Libraries[name]; lib != nil {
				source = lib.Source
			}
			err := tx.PutLibrary(name, source)
			if errors.Is(err, db.ErrTooLarge) {
				return errTooManyLibraries
			}
			if err != nil {
				return err
			}
		}
		if c.Tx != nil {
			s.pendingLibraries = set
		}
		return nil
	}
	if c.Tx != nil {
		return body(c.Tx)
	}
	return s.transact(true, nil, body)
}

// functionLoad is FUNCTION LOAD.
func functionLoad(s *Session, c *command.Call) error {
	replace := false
	last := len(c.Args) - 1
	for i := 2; i < last; i++ {
		if !c.Is(i, "replace") {
			return command.Error("ERR Unknown option given: " + command.Quoted(c.Arg(i)))
		}
		replace = true
	}
	source := string(c.Arg(last))
	if name, err := script.LibraryName(source); err == nil && !replace && s.libraries().Has(name) {
		return compiled.ErrLibraryExists(name) // its code is not executed
	}
	lib, err := s.loadLibrary(source)
	if err != nil {
		return err
	}
	err = s.changeLibraries(c, func(set *compiled.Set) ([]string, error) {
		s.server.functions.Offer(lib)
		return []string{lib.Name}, set.Add(lib, replace, nil)
	})
	if err != nil {
		return err
	}
	c.Out.BulkString(lib.Name)
	return nil
}

// functionDelete is FUNCTION DELETE.
func functionDelete(s *Session, c *command.Call) error {
	name := string(c.Arg(2))
	return c.Done(s.changeLibraries(c, func(set *compiled.Set) ([]string, error) {
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
	case len(c.Args) == 3 && !c.Is(2, "sync") && !c.Is(2, "async"):
		return command.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
	}
	return c.Done(s.changeLibraries(c, func(set *compiled.Set) ([]string, error) { return set.Clear(), nil }))
}

// functionList is FUNCTION LIST.
func functionList(s *Session, c *command.Call) error {
	withCode, pattern, filtered := false, "", false
	for i := 2; i < len(c.Args); i++ {
		switch {
		case !withCode && c.Is(i, "withcode"):
			withCode = true
		case !filtered && c.Is(i, "libraryname"):
			if i++; i == len(c.Args) {
				return command.Error("ERR library name argument was not given")
			}
			pattern, filtered = strings.ToLower(string(c.Arg(i))), true
		default:
			return command.Error("ERR Unknown argument " + command.Quoted(c.Arg(i)))
		}
	}
	set, out := s.libraries(), c.Out
	at, n := out.Begin(), 0
	for _, name := range set.Names() {
		if filtered && !c.Matches(pattern, []byte(strings.ToLower(name))) {
			continue
		}
		n++
		writeLibrary(out, set.Libraries[name], withCode)
		if out.Exceeded() {
			break
		}
	}
	out.EndArray(at, n)
	return nil
}

// writeLibrary is a library in the reply of FUNCTION LIST.
func writeLibrary(out *resp.Writer, lib *script.Library, withCode bool) {
	fields := 3
	if withCode {
		fields++
	}
	out.Map(fields)
	out.BulkString("library_name")
	out.BulkString(lib.Name)
	out.BulkString("engine")
	out.BulkString("LUA")
	out.BulkString("functions")
	out.Array(len(lib.Functions))
	for _, f := range lib.Functions {
		out.Map(3)
		out.BulkString("name")
		out.BulkString(f.Name)
		out.BulkString("description")
		if f.Described {
			out.BulkString(f.Description)
		} else {
			out.Null()
		}
		out.BulkString("flags")
		flags := f.Flags.Names()
		out.Set(len(flags))
		for _, flag := range flags {
			out.Simple(flag)
		}
	}
	if withCode {
		out.BulkString("library_code")
		out.BulkString(lib.Source)
	}
}

// functionDump is FUNCTION DUMP.
func functionDump(s *Session, c *command.Call) error {
	set := s.libraries()
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
		flush, replace = c.Is(3, "flush"), c.Is(3, "replace")
		if !flush && !replace && !c.Is(3, "append") {
			return command.Error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
		}
	}
	given, err := s.restoredLibraries(c.Arg(2))
	if err != nil {
		return err
	}
	return c.Done(s.changeLibraries(c, func(set *compiled.Set) (changed []string, err error) {
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
		s.server.functions.Offer(given...)
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
	together := compiled.NewSet()
	for _, source := range sources {
		lib, err := s.loadLibrary(source)
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
	set, out := s.libraries(), c.Out
	out.Map(2)
	out.BulkString("running_script")
	s.server.scripts.longest(func(r *scriptRun) {
		if r == nil {
			out.Null()
			return
		}
		out.Map(3)
		out.BulkString("name")
		out.BulkString(r.run.Name)
		out.BulkString("command")
		out.Array(len(r.call.Args))
		for _, arg := range r.call.Args {
			out.Bulk(arg)
		}
		out.BulkString("duration_ms")
		out.Int(time.Since(r.started).Milliseconds())
	})
	out.BulkString("engines")
	out.Map(1)
	out.BulkString("LUA")
	out.Map(2)
	out.BulkString("libraries_count")
	out.Int(int64(len(set.Libraries)))
	out.BulkString("functions_count")
	out.Int(int64(len(set.Functions)))
	return nil
}

// libraries are those that the session sees: within EXEC with what it has changed itself.
func (s *Session) libraries() *compiled.Set {
	if s.pendingLibraries != nil {
		return s.pendingLibraries
	}
	return s.server.functions.Current()
}

// loadLibrary compiles and loads the source of a library that a client has sent.
func (s *Session) loadLibrary(source string) (*script.Library, error) {
	r := &scriptRun{session: s}
	r.run.Host = script.Host{Log: r.log, Context: s.host.Context}
	lib, err := s.server.scripts.engine.Load(source, &r.run, script.MaxLoad)
	var refused script.Error
	if errors.As(err, &refused) {
		return nil, command.Error("ERR " + string(refused))
	}
	return lib, err
}

// The refusals about functions, in Redis's words.
const (
	errFunctionUnknown  command.Error = "ERR Function not found"
	errLibraryUnknown   command.Error = "ERR Library not found"
	errFlagWrites       command.Error = "ERR Can not execute a script with write flag using *_ro command."
	errTooManyLibraries command.Error = "ERR the libraries are too many, or one is too long for the store. Delete some with FUNCTION DELETE."
)
