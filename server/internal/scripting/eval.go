package scripting

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/script"
)

// EVAL and FCALL; execution.go has the execution, cache.go what is kept of scripts, package script the
// language.

const evalFlags = command.NoScript | command.Stale | command.SkipMonitor | command.NoMandatoryKeys | command.MovableKeys | command.RunsScript

// scriptKeys are the keys that a script declares: as many as argument 2 says, from argument 3 on. use is what COMMAND
// says of them; what the script does to them is not known before it runs.
func scriptKeys(use string) []command.Keys {
	return []command.Keys{{Use: use, First: 2, Counted: true}}
}

// evalCommands run scripts and functions.
func evalCommands(of source) []*command.Command {
	return []*command.Command{
		{Name: "eval", Arity: -3, Flags: evalFlags, Keys: scriptKeys("RW access update"), Run: of.monitored(evalCommand)},
		{Name: "eval_ro", Arity: -3, Flags: evalFlags | command.ReadOnly, Keys: scriptKeys("RO access"), Run: of.monitored(evalCommand)},
		{Name: "evalsha", Arity: -3, Flags: evalFlags, Keys: scriptKeys("RW access update"), Run: of.monitored(evalshaCommand)},
		{Name: "evalsha_ro", Arity: -3, Flags: evalFlags | command.ReadOnly, Keys: scriptKeys("RO access"), Run: of.monitored(evalshaCommand)},
		{Name: "fcall", Arity: -3, Flags: evalFlags, Keys: scriptKeys("RW access update"), Run: of.monitored(fcallCommand)},
		{Name: "fcall_ro", Arity: -3, Flags: evalFlags | command.ReadOnly, Keys: scriptKeys("RO access"), Run: of.monitored(fcallCommand)},
	}
}

// countedKeys splits the arguments from the number of keys on. noNumber is the refusal of what is none.
func countedKeys(c *command.Call, noNumber command.Error) (keys, args [][]byte, err error) {
	n, ok := number.ParseInt(c.Arg(2))
	rest := c.Args[3:]
	switch {
	case !ok:
		return nil, nil, noNumber
	case n > int64(len(rest)):
		return nil, nil, errTooFewKeys
	case n < 0:
		return nil, nil, errNegativeKeys
	}
	return rest[:n], rest[n:], nil
}

// evalCommand is EVAL and EVAL_RO.
func evalCommand(s *Session, c *command.Call) error {
	if _, _, err := countedKeys(c, command.ErrNotInteger); err != nil {
		return err
	}
	p := s.Cache.OfSource(c.Arg(1))
	if p == nil && s.Lent.Where().InLoop {
		return shared.ErrLong
	}
	if p == nil {
		var err error
		if p, err = s.Cache.Load(string(c.Arg(1)), false); err != nil {
			return err
		}
	}
	return s.runProgram(c, p)
}

// evalshaCommand is EVALSHA and EVALSHA_RO. The number of keys is checked before the script is looked up, as in Redis: a
// client that gets NOSCRIPT can repeat the same arguments with EVAL.
func evalshaCommand(s *Session, c *command.Call) error {
	if _, _, err := countedKeys(c, command.ErrNotInteger); err != nil {
		return err
	}
	p := s.Cache.OfSHA(c.Arg(1))
	if p == nil {
		return errNoScript
	}
	return s.runProgram(c, p)
}

// runProgram runs a script of the cache.
func (s *Session) runProgram(c *command.Call, p *Script) error {
	keys, args, err := countedKeys(c, command.ErrNotInteger)
	if err != nil {
		return err
	}
	if s.Lent.Where().InLoop && p.RunsApart() {
		return shared.ErrLong
	}
	r := s.newRun(c, &p.Known)
	defer r.reset()
	r.program, r.readOnly = p.Program, c.Command.Flags&command.ReadOnly != 0
	if p.Declared {
		if err := r.obeyFlags(p.Flags); err != nil {
			return err
		}
	}
	r.Script.Name, r.Script.Keys, r.Script.Args = p.SHA, keys, args
	return s.runScript(r)
}

// fcallCommand is FCALL and FCALL_RO.
func fcallCommand(s *Session, c *command.Call) error {
	f := s.Set().Functions[strings.ToLower(string(c.Arg(1)))]
	if f == nil {
		return errFunctionUnknown
	}
	keys, args, err := countedKeys(c, "ERR Bad number of keys provided")
	if err != nil {
		return err
	}
	r := s.newRun(c, &f.Known)
	defer r.reset()
	r.function, r.IsFunction = f.Function, true
	if err := r.obeyFlags(f.Flags); err != nil {
		return err
	}
	r.Script.Name, r.Script.Keys, r.Script.Args = f.Name, keys, args
	return s.runScript(r)
}

// obeyFlags refuses a run that its flags do not allow, and notes what they do.
func (r *execution) obeyFlags(flags script.Flags) error {
	v := r.session.State
	readOnly := r.Call.Command.Flags&command.ReadOnly != 0
	r.readOnly = readOnly || flags&script.NoWrites != 0
	r.mayGrow = flags&script.AllowOOM != 0
	r.oneSlot = v.Options.Cluster && flags&script.AllowCrossSlotKeys == 0
	switch {
	case v.Options.Cluster && flags&script.NoCluster != 0:
		return errFlagNoCluster
	case readOnly && flags&script.NoWrites == 0:
		return errFlagWrites
	case flags&(script.NoWrites|script.AllowOOM) == 0:
		return v.Shortage(r.Call.Tx == nil, r.Call.Tx == nil && !r.where.InLoop)
	}
	return nil
}

// DeclaresNoWrites reports whether EVAL, EVALSHA or FCALL is of a script whose flags say that it writes nothing. Of one that
// is not known nothing can be said.
func (s *Session) DeclaresNoWrites(cmd *command.Command, args [][]byte) bool {
	if len(args) < 2 {
		return false
	}
	switch cmd.Name {
	case "eval":
		line, _, ended := bytes.Cut(args[1], []byte("\n")) // a script may be long
		if !ended || !bytes.HasPrefix(line, []byte("#!")) {
			return false
		}
		flags, err := FlagsOf(string(line) + "\n")
		return err == nil && flags&script.NoWrites != 0
	case "evalsha":
		p := s.Cache.OfSHA(args[1])
		return p != nil && p.Flags&script.NoWrites != 0
	}
	f := s.Set().Functions[strings.ToLower(string(args[1]))]
	return f != nil && f.Flags&script.NoWrites != 0
}

// putLibraries puts libraries that have changed. Of several all are deleted first: whoever follows the changes one by
// one has no function twice, as one that goes to another library.
func putLibraries(tx *db.Tx, changed []string, after map[string]*script.Library) error {
	put := func(name, source string) error {
		err := serverside.DB.PutLibrary(tx, name, source)
		if errors.Is(err, db.ErrTooLarge) {
			return errTooManyLibraries
		}
		return err
	}
	slices.Sort(changed)
	changed = slices.Compact(changed)
	for _, name := range changed {
		if after[name] == nil || len(changed) > 1 {
			if err := put(name, ""); err != nil {
				return err
			}
		}
	}
	for _, name := range changed {
		if lib := after[name]; lib != nil {
			if err := put(name, lib.Source); err != nil {
				return err
			}
		}
	}
	return nil
}

// Change executes a command that changes libraries. change works on a copy of those that the session sees, and
// names those that it has changed. It runs with all keys locked, so that one change comes after the other, but it is
// short: code of libraries has run before.
func (s *Session) Change(c *command.Call, change func(set *Set) (changed []string, err error)) error {
	body := func(tx *db.Tx) error {
		set := s.Set().Clone()
		changed, err := change(set)
		if err != nil {
			return err
		}
		if err := putLibraries(tx, changed, set.Libraries); err != nil {
			return err
		}
		if c.Tx != nil {
			s.pending = set
		}
		return nil
	}
	if c.Tx != nil {
		return body(c.Tx)
	}
	return s.Lent.Transact(true, nil, body)
}

// Set are the libraries that the session sees: within EXEC with what it has changed itself.
func (s *Session) Set() *Set {
	if s.pending != nil {
		return s.pending
	}
	return s.Libraries.Current()
}

// Load compiles and loads the source of a library that a client has sent. Its code runs here, with a bound of time
// (script.MaxLoad), and can call no commands. No key is locked meanwhile, unless by an EXEC that loads.
func (s *Session) Load(source string) (*script.Library, error) {
	r := &execution{session: s}
	r.Script.Host = script.Host{Log: r.log, Context: s.Host.Context}
	lib, err := s.Engine.Load(source, &r.Script, script.MaxLoad)
	if refused, ok := script.ErrorOf(err); ok {
		return nil, command.Error("ERR " + string(refused))
	}
	return lib, err
}

// The refusals about scripts and functions, in Redis's words.
const (
	errTooFewKeys       command.Error = "ERR Number of keys can't be greater than number of args"
	errNegativeKeys     command.Error = "ERR Number of keys can't be negative"
	errNoScript         command.Error = "NOSCRIPT No matching script. Please use EVAL."
	errFunctionUnknown  command.Error = "ERR Function not found"
	errFlagWrites       command.Error = "ERR Can not execute a script with write flag using *_ro command."
	errTooManyLibraries command.Error = "ERR the libraries are too many, or one is too long for the store. Delete some with FUNCTION DELETE."
)
