package admin

import (
	"strings"
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
)

// A session describes itself in its clients.Client, with atomics, and these commands read the
// clients of all sessions; none of them waits for another session. Addresses and ids are those of
// connections, so an embedded session is in no list.

// clientCommands read and change what CLIENT LIST shows. Other sessions may be at work at the same
// time: see type client.
func clientCommands(of source) []*command.Command {
	return []*command.Command{
		{Name: "client|id", Arity: 2, Flags: command.Describes | command.OfSession,
			Run: of.on(func(a *Caller, c *command.Call) error { c.Out.Int(a.Client.ID()); return nil })},
		{Name: "client|getname", Arity: 2, Flags: command.Describes | command.OfSession, Run: of.on(clientGetName)},
		{Name: "client|setname", Arity: 3, Flags: command.OfSession,
			Run: of.on(func(a *Caller, c *command.Call) error {
				return c.Done(a.Client.SetName(c.Arg(2)))
			})},
		{Name: "client|setinfo", Arity: 4, Flags: command.OfSession, Run: of.on(clientSetInfo)},
		{Name: "client|info", Arity: 2, Flags: command.Describes | command.OfSession, Run: of.on(clientInfo)},
		{Name: "client|list", Arity: -2, Flags: command.Describes | command.OfOperator, Run: of.on(clientList)},
		command.HelpRow("client"),
	}
}

// clientControlCommands end connections and waits of others. Both only ask for it: the goroutine or the loop that
// drives the other session does the rest, so neither command waits for it.
func clientControlCommands(of source) []*command.Command {
	return []*command.Command{
		{Name: "client|kill", Arity: -3, Flags: command.OfOperator, Run: of.on(clientKill)},
		{Name: "client|unblock", Arity: -3, Flags: command.OfOperator, Run: of.on(clientUnblock)},
	}
}

// clientGetName is CLIENT GETNAME: null without a name.
func clientGetName(a *Caller, c *command.Call) error {
	if name := *a.Client.Name.Load(); name != "" {
		c.Out.BulkString(name)
		return nil
	}
	c.Out.Null()
	return nil
}

// clientSetInfo is CLIENT SETINFO, by which libraries give their name and version. Unlike a name set by SETNAME both
// survive RESET: they are of the program, not of the connection's use.
func clientSetInfo(a *Caller, c *command.Call) error {
	switch {
	case c.Args.Is(2, "lib-name"):
		return c.Done(clients.SetText(&a.Client.Library, c.Arg(3), "lib-name"))
	case c.Args.Is(2, "lib-ver"):
		return c.Done(clients.SetText(&a.Client.Version, c.Arg(3), "lib-ver"))
	}
	return command.Errorf("ERR Unrecognized option '%s'", command.Quoted(c.Arg(2)))
}

// clientInfo is CLIENT INFO. The counts of this session are flushed before, so that it shows this
// command: cmd= is noted when a run of equal commands ends. An embedded session has a line too, though
// it is in no list.
func clientInfo(a *Caller, c *command.Call) error {
	a.Flush()
	a.NoteBuffers()
	c.Out.Verbatim("txt", a.Client.ListLine(time.Now())+"\n")
	return nil
}

// clientList is CLIENT LIST. An id that no client has is skipped. Sessions go on meanwhile, so neither the list nor a line
// is of one moment. Lines are formatted with no lock held.
func clientList(a *Caller, c *command.Call) error {
	var f clientFilter
	if err := f.parse(c, a.State.Users); err != nil {
		return err
	}
	a.Flush()
	a.NoteBuffers()
	now := time.Now()
	var lines strings.Builder
	for _, other := range a.State.Clients.Listed() {
		if f.matches(other, a.Client) {
			lines.WriteString(other.ListLine(now))
			lines.WriteByte('\n')
		}
	}
	c.Out.Verbatim("txt", lines.String())
	return nil
}

// clientKill is CLIENT KILL. Who kills himself gets the reply first. Connections are closed from
// here without waiting: a killed session finds out when it next reads or writes.
func clientKill(a *Caller, c *command.Call) error {
	var f clientFilter
	byAddress := len(c.Args) == 3 // the old form has one argument, an address, and does kill the caller
	if byAddress {
		address := c.Key(2)
		f.is("addr", func(other *clients.Client) bool { return other.Remote == address })
	} else {
		f.skipMe = true
		if err := f.parse(c, a.State.Users); err != nil {
			return err
		}
	}
	killed := 0
	for _, other := range a.State.Clients.Listed() {
		if !f.matches(other, a.Client) {
			continue
		}
		if other == a.Client {
			a.End() // once the reply is sent
		} else if !other.KillOnce(nil) {
			continue
		}
		killed++
	}
	if !byAddress {
		return c.Int(killed, nil)
	}
	if killed == 0 {
		return command.Error("ERR No such client")
	}
	return c.OK()
}

// clientUnblock is CLIENT UNBLOCK: 0 if the client is not waiting, or is being served at this
// moment: then it gets its element. TIMEOUT, the default, makes the other command reply as if its time
// were over, ERROR with UNBLOCKED.
func clientUnblock(a *Caller, c *command.Call) error {
	how := clients.TimedOut
	switch {
	case len(c.Args) == 3:
	case len(c.Args) == 4 && c.Args.Is(3, "timeout"):
	case len(c.Args) == 4 && c.Args.Is(3, "error"):
		how = clients.Unblocked
	case len(c.Args) > 4:
		return command.ArityError(c.Command.Name)
	default:
		return command.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	}
	id, err := c.Args.ParseInt(2)
	if err != nil {
		return err
	}
	other := a.State.Clients.Get(id)
	if other != nil && other.IsPostponed() {
		other = nil // it does not wait in a command: CLIENT UNPAUSE is for it
	}
	return c.Flag(other != nil && other.EndWait(how), nil)
}
