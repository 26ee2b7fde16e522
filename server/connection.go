package server

import (
	"bytes"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

var connectionCommands = []*command.Command{
	{
		Name: "ping", Arity: -1, Flags: command.Fast | command.WhileSubscribed, Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Replies PONG, or the message.", Syntax: "[message]", Run: onSession(pingCommand),
	},
	{
		Name: "echo", Arity: 2, Flags: command.Loading | command.Stale | command.Fast, Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Replies the message.", Syntax: "message",
		Run: func(c *command.Call) error { c.Out.Bulk(c.Arg(1)); return nil },
	},
	{
		Name: "select", Arity: 2, Flags: command.Loading | command.Stale | command.Fast, Group: command.GroupConnection, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Changes the database of this connection.", Syntax: "index", Run: onSession(selectCommand),
	},
	{
		Name: "quit", Arity: -1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy | command.RunsInsideMulti | command.WhileSubscribed, Group: command.GroupConnection,
		Since: "1.0.0", Complexity: "O(1)", Summary: "Closes this connection, once its replies are sent.",
		// Who reads the reply finds the session gone: a message that others publish then does not count it any more.
		Run: onSession(func(s *Session, c *command.Call) error { s.Close(); return c.OK() }),
	},
	{
		Name: "reset", Arity: 1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy | command.RunsInsideMulti | command.WhileSubscribed, Group: command.GroupConnection,
		Since: "6.2.0", Complexity: "O(1)", Summary: "Puts this connection back into the state of a new one.", Run: onSession(resetCommand),
	},
	{
		Name: "hello", Arity: -1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy, Group: command.GroupConnection,
		Since: "6.0.0", Complexity: "O(1)", Summary: "Chooses the protocol version and describes the server.",
		Syntax: "[protover [AUTH username password] [SETNAME clientname]]", Run: onSession(helloCommand),
	},
	{
		Name: "client", Arity: -2, Group: command.GroupConnection, Since: "2.4.0", Complexity: "Depends on the subcommand",
		Summary: "A container for commands about connections.", Subcommands: append(clientCommands, clientControlCommands...),
	},
	// A browser that is tricked into talking to this port starts with one of these lines: the connection ends before it
	// can smuggle a command in behind them.
	{
		Name: "post", Arity: -1, Flags: command.Loading | command.Stale | command.ReadOnly | command.NoAuth | command.RunsInsideMulti, Group: command.GroupConnection, Since: "3.2.7",
		Complexity: "O(1)", Summary: "Closes the connection: its client speaks HTTP.", Run: onSession(foreignProtocol),
	},
	{
		Name: "host:", Arity: -1, Flags: command.Loading | command.Stale | command.ReadOnly | command.NoAuth | command.RunsInsideMulti, Group: command.GroupConnection, Since: "3.2.7",
		Complexity: "O(1)", Summary: "Closes the connection: its client speaks HTTP.", Run: onSession(foreignProtocol),
	},
}

var clientCommands = []*command.Command{
	{
		Name: "client|id", Arity: 2, Flags: command.NoScript | command.Loading | command.Stale, Since: "5.0.0", Complexity: "O(1)",
		Summary: "Returns the number of this connection.",
		Run:     onSession(func(s *Session, c *command.Call) error { c.Out.Int(s.id); return nil }),
	},
	{
		Name: "client|getname", Arity: 2, Flags: command.NoScript | command.Loading | command.Stale, Since: "2.6.9", Complexity: "O(1)",
		Summary: "Returns the name of this connection.", Run: onSession(clientGetName),
	},
	{
		Name: "client|setname", Arity: 3, Flags: command.NoScript | command.Loading | command.Stale, Since: "2.6.9", Complexity: "O(1)",
		Summary: "Names this connection.", Syntax: "connection-name",
		Run: onSession(func(s *Session, c *command.Call) error {
			if err := s.setName(c.Arg(2)); err != nil {
				return err
			}
			return c.OK()
		}),
	},
	{
		Name: "client|setinfo", Arity: 4, Flags: command.NoScript | command.Loading | command.Stale, Since: "7.2.0", Complexity: "O(1)",
		Summary: "Records the library that this connection uses.", Syntax: "<LIB-NAME libname | LIB-VER libver>", Run: onSession(clientSetInfo),
	},
	{
		Name: "client|info", Arity: 2, Flags: command.NoScript | command.Loading | command.Stale, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Describes this connection.", Run: onSession(clientInfo),
	},
	{
		Name: "client|list", Arity: -2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Since: "2.4.0", Complexity: "O(n), n being the number of connections",
		Summary: "Describes all connections.", Syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
		Run: onSession(clientList),
	},
	{
		Name: "client|help", Arity: 2, Flags: command.Loading | command.Stale, Since: "5.0.0", Complexity: "O(1)",
		Summary: "Lists the subcommands.", Run: command.Help,
	},
}

func pingCommand(s *Session, c *command.Call) error {
	switch {
	case len(c.Args) > 2:
		return command.ArityError("ping")
	case s.inSubscribedMode(): // the reply looks like a message
		c.Out.Array(2)
		c.Out.BulkString("pong")
		c.Out.Bulk(bytes.Join(c.Args[1:], nil))
	case len(c.Args) == 1:
		c.Out.Simple("PONG")
	default:
		c.Out.Bulk(c.Arg(1))
	}
	return nil
}

func selectCommand(s *Session, c *command.Call) error {
	n, err := c.ParseDatabase(1)
	if err != nil {
		return err
	}
	if err := s.setNamespace(n); err != nil {
		return err
	}
	return c.OK()
}

func resetCommand(s *Session, c *command.Call) error {
	s.queue = nil
	s.unwatch()
	s.server.hub.unsubscribeAll(s)
	if err := s.setNamespace(0); err != nil {
		return err
	}
	s.out.SetVersion(2)
	s.client.name.Store(&noText)
	c.Out.Simple("RESET")
	return nil
}

func foreignProtocol(s *Session, c *command.Call) error {
	s.closed = true
	s.server.options.Logger.Warn("a client spoke HTTP, perhaps an attack through a browser; connection closed",
		"client", s.id, "address", s.client.remote)
	return errNoReply
}

// setName gives the connection a name, or takes it away when the name is empty.
func (s *Session) setName(name []byte) error {
	if !printable(name) {
		return errInvalidName
	}
	text := string(name)
	s.client.name.Store(&text)
	return nil
}

func helloCommand(s *Session, c *command.Call) error {
	version := int64(s.out.Version())
	next := 1
	if len(c.Args) > 1 {
		var ok bool
		if version, ok = number.ParseInt(c.Arg(1)); !ok {
			return errProtoNotInteger
		}
		if version != 2 && version != 3 {
			return errNoProto
		}
		next = 2
	}
	var name []byte
	for ; next < len(c.Args); next++ {
		more := len(c.Args) - next - 1
		switch {
		case c.Is(next, "auth") && more >= 2:
			// There are no passwords yet: the default user is open, as in Redis without a configuration.
			if string(c.Arg(next+1)) != "default" {
				return command.Error("WRONGPASS invalid username-password pair or user is disabled.")
			}
			next += 2
		case c.Is(next, "setname") && more >= 1:
			name = c.Arg(next + 1)
			if !printable(name) {
				return errInvalidName
			}
			next++
		default:
			return command.Errorf("ERR Syntax error in HELLO option '%s'", command.Clip(c.Arg(next), len(c.Arg(next))))
		}
	}
	if name != nil {
		if err := s.setName(name); err != nil {
			return err
		}
	}
	s.out.SetVersion(int(version))
	c.Out.Map(7)
	for _, pair := range [][2]string{{"server", "redis"}, {"version", RedisVersion}} {
		c.Out.BulkString(pair[0])
		c.Out.BulkString(pair[1])
	}
	c.Out.BulkString("proto")
	c.Out.Int(version)
	c.Out.BulkString("id")
	c.Out.Int(s.id)
	for _, pair := range [][2]string{{"mode", "standalone"}, {"role", "master"}} {
		c.Out.BulkString(pair[0])
		c.Out.BulkString(pair[1])
	}
	c.Out.BulkString("modules")
	c.Out.Array(0)
	return nil
}

func clientGetName(s *Session, c *command.Call) error {
	if name := *s.client.name.Load(); name != "" {
		c.Out.BulkString(name)
		return nil
	}
	c.Out.Null()
	return nil
}

func clientSetInfo(s *Session, c *command.Call) error {
	text := string(c.Arg(3))
	switch {
	case c.Is(2, "lib-name"):
		if !printable(c.Arg(3)) {
			return command.Error("ERR lib-name cannot contain spaces, newlines or special characters.")
		}
		s.client.library.Store(&text)
	case c.Is(2, "lib-ver"):
		if !printable(c.Arg(3)) {
			return command.Error("ERR lib-ver cannot contain spaces, newlines or special characters.")
		}
		s.client.version.Store(&text)
	default:
		return command.Errorf("ERR Unrecognized option '%s'", command.Quoted(c.Arg(2)))
	}
	return c.OK()
}

func clientInfo(s *Session, c *command.Call) error {
	s.flushStats()
	c.Out.Verbatim("txt", s.listLine(time.Now())+"\n")
	return nil
}

func clientList(s *Session, c *command.Call) error {
	var wanted map[int64]bool
	kind := ""
	switch {
	case len(c.Args) == 2:
	case len(c.Args) == 4 && c.Is(2, "type"):
		if kind = strings.ToLower(string(c.Arg(3))); !isClientType(kind) {
			return command.Errorf("ERR Unknown client type '%s'", command.Quoted(c.Arg(3)))
		}
	case len(c.Args) > 3 && c.Is(2, "id"):
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
	s.flushStats()
	now := time.Now()
	var lines strings.Builder
	for _, other := range s.server.sessions() {
		if (wanted == nil || wanted[other.id]) && (kind == "" || kind == other.client.kind()) {
			lines.WriteString(other.listLine(now))
			lines.WriteByte('\n')
		}
	}
	c.Out.Verbatim("txt", lines.String())
	return nil
}
