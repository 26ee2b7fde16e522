package admin

import (
	"time"

	"github.com/stavedb/stave/server/command"
)

// clientModeCommands change how connections are served: whether they wait, whether they are closed first when memory is short.
func clientModeCommands(of source) []*command.Command {
	return []*command.Command{
		{Name: "client|pause", Arity: -3, Flags: command.OfOperator, Run: of.on(clientPause)},
		{Name: "client|unpause", Arity: 2, Flags: command.OfOperator,
			Run: of.on(func(a *Caller, c *command.Call) error { a.State.EndPause(); return c.OK() })},
		{Name: "client|no-evict", Arity: 3, Flags: command.OfOperator,
			Run: of.on(func(a *Caller, c *command.Call) error { return setMode(c, a.Client.NoEvict.Store) })},
		{Name: "client|no-touch", Arity: 3, Flags: command.OfSession,
			Run: of.on(func(a *Caller, c *command.Call) error { return setMode(c, a.Client.NoTouch.Store) })},
		{Name: "client|capa", Arity: -3, Flags: command.OfSession, Run: of.on(clientCapa)},
	}
}

// setMode sets what ON and OFF choose. The target is atomic: evictions read NoEvict from other sessions. NO-TOUCH is
// noted for CLIENT LIST and changes nothing else, for keys have no time of access here.
func setMode(c *command.Call, set func(bool)) error {
	switch {
	case c.Args.Is(2, "on"):
		set(true)
	case c.Args.Is(2, "off"):
		set(false)
	default:
		return command.ErrSyntax
	}
	return c.OK()
}

// clientCapa is CLIENT CAPA, of Valkey: what the client can do. A word that is not known has no effect.
func clientCapa(a *Caller, c *command.Call) error {
	for i := 2; i < len(c.Args); i++ {
		if c.Args.Is(i, "redirect") {
			a.Client.Redirect.Store(true)
		}
	}
	return c.OK()
}

// clientPause is CLIENT PAUSE. It concerns the caller too, from its next command on. The time is in milliseconds from
// now; a pause that is under way never becomes shorter or milder by another one, see pause.begin. A pause of writes can be
// ended by CLIENT UNPAUSE; one of all commands holds that up too, as in Redis, and ends by its time only.
func clientPause(a *Caller, c *command.Call) error {
	all := true
	switch {
	case len(c.Args) > 4:
		return command.ErrUnknownOrArity(c)
	case len(c.Args) == 4 && c.Args.Is(3, "write"):
		all = false
	case len(c.Args) == 4 && !c.Args.Is(3, "all"):
		return command.Error("ERR CLIENT PAUSE mode must be WRITE or ALL")
	}
	timeout, err := parseMilliseconds(c, 2)
	if err != nil {
		return err
	}
	a.State.Pause.Begin(time.Now().Add(timeout), all)
	return c.OK()
}
