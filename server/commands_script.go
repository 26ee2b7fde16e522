package server

import (
	"strings"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/compiled"
	"github.com/stavedb/stave/server/script"
)

// The commands about scripts; script_run.go has the execution, package script the language.

const (
	evalFlags   = command.NoScript | command.Stale | command.SkipMonitor | command.NoMandatoryKeys | command.MovableKeys | command.RunsScript
	evalCost    = "That of the script"
	evalSyntax  = "script numkeys [key [key ...]] [arg [arg ...]]"
	shaSyntax   = "sha1 numkeys [key [key ...]] [arg [arg ...]]"
	scriptSince = "2.6.0"
)

// scriptKeys are the keys that a script declares.
func scriptKeys(use string) []command.Keys {
	return []command.Keys{{Use: use, First: 2, Counted: true}}
}

// scriptCommands run scripts and keep them.
var scriptCommands = command.InGroup(command.GroupScripting, []*command.Command{
	{Name: "eval", Arity: -3, Flags: evalFlags, Keys: scriptKeys("RW access update"), Since: scriptSince, Complexity: evalCost,
		Summary: "Runs a Lua script as one atomic commit.", Syntax: evalSyntax, Run: onSession(evalCommand)},
	{Name: "eval_ro", Arity: -3, Flags: evalFlags | command.ReadOnly, Keys: scriptKeys("RO access"), Since: "7.0.0", Complexity: evalCost,
		Summary: "Runs a Lua script that writes nothing.", Syntax: evalSyntax, Run: onSession(evalCommand)},
	{Name: "evalsha", Arity: -3, Flags: evalFlags, Keys: scriptKeys("RW access update"), Since: scriptSince, Complexity: evalCost,
		Summary: "Runs a Lua script that the server knows, as one atomic commit.", Syntax: shaSyntax, Run: onSession(evalshaCommand)},
	{Name: "evalsha_ro", Arity: -3, Flags: evalFlags | command.ReadOnly, Keys: scriptKeys("RO access"), Since: "7.0.0", Complexity: evalCost,
		Summary: "Runs a Lua script that the server knows and that writes nothing.", Syntax: shaSyntax, Run: onSession(evalshaCommand)},
	{
		Name: "script", Arity: -2, Since: scriptSince, Complexity: "Depends on the subcommand",
		Summary: "A container for commands about scripts.", Subcommands: scriptSubcommands,
	},
})

var scriptSubcommands = []*command.Command{
	{Name: "script|load", Arity: 3, Flags: command.NoScript | command.Stale, Since: scriptSince, Complexity: "O(n), n being the length of the script",
		Summary: "Compiles a script, keeps it and returns its SHA-1.", Syntax: "script", Run: onSession(scriptLoad)},
	{Name: "script|exists", Arity: -3, Flags: command.NoScript, Since: scriptSince, Complexity: "O(n), n being the number of scripts asked for",
		Summary: "Says which scripts the server knows.", Syntax: "sha1 [sha1 ...]", Run: onSession(scriptExists)},
	{Name: "script|flush", Arity: -2, Flags: command.NoScript, Since: scriptSince, Complexity: "O(n), n being the number of scripts",
		Summary: "Forgets all scripts.", Syntax: "[ASYNC | SYNC]", Run: onSession(scriptFlush)},
	{Name: "script|kill", Arity: 2, Flags: command.NoScript | command.AllowBusy, Since: scriptSince, Complexity: "O(1)",
		Summary: "Stops the scripts that run for long and have written nothing.",
		Run:     onSession(func(s *Session, c *command.Call) error { return c.Done(s.server.scripts.kill(false)) })},
	{Name: "script|debug", Arity: 3, Flags: command.NoScript, Since: "3.2.0", Complexity: "O(1)",
		Summary: "Is refused, but for NO: there is no debugger.", Syntax: "<YES | SYNC | NO>", Run: scriptDebug},
	command.HelpRow("script", "5.0.0"),
}

// countedKeys splits the arguments from the number of keys on.
func countedKeys(c *command.Call) (keys, args [][]byte, err error) {
	n, ok := number.ParseInt(c.Arg(2))
	rest := c.Args[3:]
	switch {
	case !ok:
		return nil, nil, command.ErrNotInteger
	case n > int64(len(rest)):
		return nil, nil, errTooFewKeys
	case n < 0:
		return nil, nil, errNegativeKeys
	}
	return rest[:n], rest[n:], nil
}

// The refusals of a number of keys, in Redis's words.
const (
	errTooFewKeys   command.Error = "ERR Number of keys can't be greater than number of args"
	errNegativeKeys command.Error = "ERR Number of keys can't be negative"
)

// evalCommand is EVAL and EVAL_RO.
func evalCommand(s *Session, c *command.Call) error {
	if _, _, err := countedKeys(c); err != nil {
		return err
	}
	if s.inLoop && !s.server.scripts.cache.Known(string(c.Arg(1))) {
		return errLong
	}
	p, err := s.server.scripts.cache.Load(string(c.Arg(1)), false)
	if err != nil {
		return err
	}
	return s.runProgram(c, p)
}

// evalshaCommand is EVALSHA and EVALSHA_RO.
func evalshaCommand(s *Session, c *command.Call) error {
	if _, _, err := countedKeys(c); err != nil {
		return err
	}
	p := s.server.scripts.cache.Lookup(strings.ToLower(c.Key(1)))
	if p == nil {
		return errNoScript
	}
	return s.runProgram(c, p)
}

// runProgram runs a script of the cache.
func (s *Session) runProgram(c *command.Call, p *compiled.Script) error {
	keys, args, err := countedKeys(c)
	if err != nil {
		return err
	}
	if s.inLoop && p.LeavesLoop() {
		return errLong
	}
	r := &scriptRun{call: c, needs: &p.Needs, readOnly: c.Command.Flags&command.ReadOnly != 0}
	if p.Declared {
		if err := s.obeyFlags(r, p.Flags); err != nil {
			return err
		}
	}
	r.run.Name, r.run.Keys, r.run.Args = p.SHA, keys, args
	r.execute = func(run *script.Run, out *resp.Writer) error { return s.server.scripts.engine.Run(p.Program, run, out) }
	if err = s.runScript(r); err == errLong {
		p.TookLong()
		if r.within {
			err = errWouldWait // others share the transaction
		}
	}
	return err
}

// scriptLoad is SCRIPT LOAD.
func scriptLoad(s *Session, c *command.Call) error {
	p, err := s.server.scripts.cache.Load(string(c.Arg(2)), true)
	if err != nil {
		return err
	}
	c.Out.BulkString(p.SHA)
	return nil
}

// scriptExists is SCRIPT EXISTS.
func scriptExists(s *Session, c *command.Call) error {
	c.Out.Array(len(c.Args) - 2)
	for _, sha := range c.Args[2:] {
		n := int64(0)
		if s.server.scripts.cache.Lookup(strings.ToLower(string(sha))) != nil {
			n = 1
		}
		c.Out.Int(n)
	}
	return nil
}

// scriptFlush is SCRIPT FLUSH. Both of its modes do the same: memory is freed in the background.
func scriptFlush(s *Session, c *command.Call) error {
	if len(c.Args) > 3 || len(c.Args) == 3 && !c.Is(2, "sync") && !c.Is(2, "async") {
		return command.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	s.server.scripts.cache.Flush()
	return c.OK()
}

// scriptDebug is SCRIPT DEBUG.
func scriptDebug(c *command.Call) error {
	switch {
	case c.Is(2, "no"):
		return c.OK()
	case c.Is(2, "yes"), c.Is(2, "sync"):
		return command.Error("ERR there is no debugger of scripts; redis.log writes to the server's log")
	}
	return command.Error("ERR Use SCRIPT DEBUG YES/SYNC/NO")
}
