package admin

import (
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/acl"
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

// clientList is CLIENT LIST. As in Redis a selection by TYPE and one by ID exclude each other, and an id
// that no client has is skipped. Sessions go on meanwhile, so neither the list nor a line is of one moment.
// Lines are formatted with no lock held.
func clientList(a *Caller, c *command.Call) error {
	var wanted map[int64]bool
	kind := ""
	switch {
	case len(c.Args) == 2:
	case len(c.Args) == 4 && c.Args.Is(2, "type"):
		var known bool
		if kind, known = clientType(string(c.Arg(3))); !known {
			return command.Errorf("ERR Unknown client type '%s'", command.Quoted(c.Arg(3)))
		}
	case len(c.Args) > 3 && c.Args.Is(2, "id"):
		wanted = make(map[int64]bool)
		for _, arg := range c.Args[3:] {
			id, ok := number.ParseInt(arg)
			if !ok || id < 1 {
				return command.Error("ERR Invalid client ID")
			}
			wanted[id] = true
		}
	default:
		return command.ErrSyntax
	}
	a.Flush()
	a.NoteBuffers()
	now := time.Now()
	var lines strings.Builder
	for _, other := range a.State.Clients.Listed() {
		if (wanted == nil || wanted[other.ID()]) && (kind == "" || kind == other.Kind()) {
			lines.WriteString(other.ListLine(now))
			lines.WriteByte('\n')
		}
	}
	c.Out.Verbatim("txt", lines.String())
	return nil
}

// clientTypes are the types of connections. A master is taken and matches nothing.
var clientTypes = []string{"normal", "master", "replica", "pubsub"}

// clientFilter says which connections CLIENT KILL means. What was not given excludes nobody: a nil address, a number
// whose flag is not set, an empty user or type. A client cannot give an empty user or type: both are refused as unknown.
type clientFilter struct {
	id               int64
	clientType       string
	remote, local    *string // nil: any; an empty one is the address of no client, and not of all
	user             string
	skipMe           bool
	maxAge           time.Duration
	hasID, hasMaxAge bool
	byAddress        bool // CLIENT KILL address: an error if there is none
}

// parse reads the words of CLIENT KILL. The old form has one argument, an address, and does kill
// the caller; in the new form SKIPME is yes unless it is set.
func (f *clientFilter) parse(c *command.Call, users *acl.Users) error {
	if len(c.Args) == 3 {
		address := c.Key(2)
		*f = clientFilter{remote: &address, byAddress: true}
		return nil
	}
	f.skipMe = true
	for i := 2; i < len(c.Args); i += 2 {
		if i+1 == len(c.Args) {
			return command.ErrSyntax
		}
		if err := f.option(c, i, users); err != nil {
			return err
		}
	}
	return nil
}

// option reads one word of CLIENT KILL and its value. A word that comes twice holds as it came last. A user that does
// not exist is an error and not a filter that matches nobody, as in Redis; MAXAGE is of 7.4. An age that is
// too long for a time.Duration is cut to 272 years, which matches nobody either.
func (f *clientFilter) option(c *command.Call, i int, users *acl.Users) error {
	value := c.Key(i + 1)
	switch {
	case c.Args.Is(i, "id"):
		id, ok := number.ParseInt(c.Arg(i + 1))
		if !ok || id < 1 {
			return command.Error("ERR client-id should be greater than 0")
		}
		f.id, f.hasID = id, true
	case c.Args.Is(i, "maxage"):
		age, ok := number.ParseInt(c.Arg(i + 1))
		switch {
		case !ok:
			return command.Error("ERR maxage is not an integer or out of range")
		case age < 1:
			return command.Error("ERR maxage should be greater than 0")
		}
		f.maxAge, f.hasMaxAge = time.Duration(min(age, int64(1<<33)))*time.Second, true
	case c.Args.Is(i, "type"):
		var known bool
		if f.clientType, known = clientType(value); !known {
			return command.Errorf("ERR Unknown client type '%s'", command.Quoted(c.Arg(i+1)))
		}
	case c.Args.Is(i, "addr"):
		f.remote = &value
	case c.Args.Is(i, "laddr"):
		f.local = &value
	case c.Args.Is(i, "user"):
		if users.Get(value) == nil {
			return command.Errorf("ERR No such user '%s'", command.Quoted(c.Arg(i+1)))
		}
		f.user = value
	case c.Args.Is(i, "skipme") && c.Args.Is(i+1, "yes"):
		f.skipMe = true
	case c.Args.Is(i, "skipme") && c.Args.Is(i+1, "no"):
		f.skipMe = false
	default:
		return command.ErrSyntax
	}
	return nil
}

// clientType returns a type as clients have it, and whether it is one of Redis's. slave is the old name of replica.
func clientType(text string) (kind string, known bool) {
	if kind = strings.ToLower(text); kind == "slave" {
		kind = "replica"
	}
	return kind, slices.Contains(clientTypes, kind)
}

// matches says whether the filter means a client. All that is given must hold. It is asked for sessions of other
// goroutines, and reads only what is constant or atomic.
func (f *clientFilter) matches(c, me *clients.Client) bool {
	switch {
	case f.remote != nil && *f.remote != c.Remote,
		f.local != nil && *f.local != c.Local,
		f.hasID && f.id != c.ID(),
		f.user != "" && f.user != c.User.Load().Name(),
		f.clientType != "" && f.clientType != c.Kind(),
		f.hasMaxAge && time.Since(c.Born) < f.maxAge,
		f.skipMe && c == me:
		return false
	}
	return true
}

// clientKill is CLIENT KILL. Who kills himself gets the reply first. Connections are closed from
// here without waiting: a killed session finds out when it next reads or writes.
func clientKill(a *Caller, c *command.Call) error {
	var f clientFilter
	if err := f.parse(c, a.State.Users); err != nil {
		return err
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
	if !f.byAddress {
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
