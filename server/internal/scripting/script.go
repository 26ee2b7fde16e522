package scripting

import (
	"strings"

	"github.com/stavedb/stave/server/command"
)

// scriptCommand is SCRIPT.
func scriptCommand(of source) *command.Command {
	return &command.Command{
		Name: "script", Arity: -2,
		Subcommands: []*command.Command{
			{Name: "script|load", Arity: 3, Flags: command.NoScript | command.Stale, Run: of.on(scriptLoad)},
			{Name: "script|exists", Arity: -3, Flags: command.Describes | command.NoScript, Run: of.on(scriptExists)},
			{Name: "script|flush", Arity: -2, Flags: command.NoScript, Run: of.on(scriptFlush)},
			{Name: "script|kill", Arity: 2, Flags: command.NoScript | command.AllowBusy,
				Run: of.on(func(s *Session, c *command.Call) error { return c.Done(s.Runs.Kill(false)) })},
			{Name: "script|debug", Arity: 3, Flags: command.NoScript, Run: scriptDebug},
			command.HelpRow("script"),
		},
	}
}

// scriptLoad is SCRIPT LOAD.
func scriptLoad(s *Session, c *command.Call) error {
	p, err := s.Cache.Load(string(c.Arg(2)), true)
	if err != nil {
		return err
	}
	return c.Reply(p.SHA)
}

// scriptExists is SCRIPT EXISTS.
func scriptExists(s *Session, c *command.Call) error {
	c.Out.Array(len(c.Args) - 2)
	for i, sha := range c.Args[2:] {
		if err := c.GoesOn(i); err != nil {
			return err
		}
		c.Flag(s.Cache.Lookup(strings.ToLower(string(sha))) != nil, nil)
	}
	return nil
}

// scriptFlush is SCRIPT FLUSH. Both of its modes do the same: memory is freed in the background.
func scriptFlush(s *Session, c *command.Call) error {
	if len(c.Args) > 3 || len(c.Args) == 3 && !c.Args.Is(2, "sync") && !c.Args.Is(2, "async") {
		return command.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	s.Cache.Flush()
	return c.OK()
}

// scriptDebug is SCRIPT DEBUG.
func scriptDebug(c *command.Call) error {
	switch {
	case c.Args.Is(2, "no"):
		return c.OK()
	case c.Args.Is(2, "yes"), c.Args.Is(2, "sync"):
		return command.Error("ERR there is no debugger of scripts; redis.log writes to the server's log")
	}
	return command.Error("ERR Use SCRIPT DEBUG YES/SYNC/NO")
}
