package server

import (
	"bytes"
	"strings"
	"time"
)

var connectionCommands = []*Command{
	{
		Name: "ping", Arity: -1, Flags: Fast | whileSubscribed, Group: GroupConnection, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Replies PONG, or the message.", Syntax: "[message]", run: onSession(pingCommand),
	},
	{
		Name: "echo", Arity: 2, Flags: Loading | Stale | Fast, Group: GroupConnection, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Replies the message.", Syntax: "message",
		run: func(c *call) error { c.out.Bulk(c.arg(1)); return nil },
	},
	{
		Name: "select", Arity: 2, Flags: Loading | Stale | Fast, Group: GroupConnection, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Changes the database of this connection.", Syntax: "index", run: onSession(selectCommand),
	},
	{
		Name: "quit", Arity: -1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | runsInsideMulti | whileSubscribed, Group: GroupConnection,
		Since: "1.0.0", Complexity: "O(1)", Summary: "Closes this connection, once its replies are sent.",
		// Who reads the reply finds the session gone: a message that others publish then does not count it any more.
		run: onSession(func(s *Session, c *call) error { s.Close(); return c.ok() }),
	},
	{
		Name: "reset", Arity: 1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy | runsInsideMulti | whileSubscribed, Group: GroupConnection,
		Since: "6.2.0", Complexity: "O(1)", Summary: "Puts this connection back into the state of a new one.", run: onSession(resetCommand),
	},
	{
		Name: "hello", Arity: -1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy, Group: GroupConnection,
		Since: "6.0.0", Complexity: "O(1)", Summary: "Chooses the protocol version and describes the server.",
		Syntax: "[protover [AUTH username password] [SETNAME clientname]]", run: onSession(helloCommand),
	},
	{
		Name: "client", Arity: -2, Group: GroupConnection, Since: "2.4.0", Complexity: "Depends on the subcommand",
		Summary: "A container for commands about connections.", Subcommands: append(clientCommands, clientControlCommands...),
	},
	// A browser that is tricked into talking to this port starts with one of these lines: the connection ends before it
	// can smuggle a command in behind them.
	{
		Name: "post", Arity: -1, Flags: Loading | Stale | ReadOnly | NoAuth | runsInsideMulti, Group: GroupConnection, Since: "3.2.7",
		Complexity: "O(1)", Summary: "Closes the connection: its client speaks HTTP.", run: onSession(foreignProtocol),
	},
	{
		Name: "host:", Arity: -1, Flags: Loading | Stale | ReadOnly | NoAuth | runsInsideMulti, Group: GroupConnection, Since: "3.2.7",
		Complexity: "O(1)", Summary: "Closes the connection: its client speaks HTTP.", run: onSession(foreignProtocol),
	},
}

var clientCommands = []*Command{
	{
		Name: "client|id", Arity: 2, Flags: NoScript | Loading | Stale, Since: "5.0.0", Complexity: "O(1)",
		Summary: "Returns the number of this connection.",
		run:     onSession(func(s *Session, c *call) error { c.out.Int(s.id); return nil }),
	},
	{
		Name: "client|getname", Arity: 2, Flags: NoScript | Loading | Stale, Since: "2.6.9", Complexity: "O(1)",
		Summary: "Returns the name of this connection.", run: onSession(clientGetName),
	},
	{
		Name: "client|setname", Arity: 3, Flags: NoScript | Loading | Stale, Since: "2.6.9", Complexity: "O(1)",
		Summary: "Names this connection.", Syntax: "connection-name",
		run: onSession(func(s *Session, c *call) error {
			if err := s.setName(c.arg(2)); err != nil {
				return err
			}
			return c.ok()
		}),
	},
	{
		Name: "client|setinfo", Arity: 4, Flags: NoScript | Loading | Stale, Since: "7.2.0", Complexity: "O(1)",
		Summary: "Records the library that this connection uses.", Syntax: "<LIB-NAME libname | LIB-VER libver>", run: onSession(clientSetInfo),
	},
	{
		Name: "client|info", Arity: 2, Flags: NoScript | Loading | Stale, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Describes this connection.", run: onSession(clientInfo),
	},
	{
		Name: "client|list", Arity: -2, Flags: Admin | NoScript | Loading | Stale, Since: "2.4.0", Complexity: "O(n), n being the number of connections",
		Summary: "Describes all connections.", Syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
		run: onSession(clientList),
	},
	{
		Name: "client|help", Arity: 2, Flags: Loading | Stale, Since: "5.0.0", Complexity: "O(1)",
		Summary: "Lists the subcommands.", run: containerHelp,
	},
}

func pingCommand(s *Session, c *call) error {
	switch {
	case len(c.args) > 2:
		return errArity("ping")
	case s.inSubscribedMode(): // the reply looks like a message
		c.out.Array(2)
		c.out.BulkString("pong")
		c.out.Bulk(bytes.Join(c.args[1:], nil))
	case len(c.args) == 1:
		c.out.Simple("PONG")
	default:
		c.out.Bulk(c.arg(1))
	}
	return nil
}

func selectCommand(s *Session, c *call) error {
	n, err := c.parseDatabase(1)
	if err != nil {
		return err
	}
	if err := s.setNamespace(n); err != nil {
		return err
	}
	return c.ok()
}

func resetCommand(s *Session, c *call) error {
	s.queue = nil
	s.unwatch()
	s.server.hub.unsubscribeAll(s)
	if err := s.setNamespace(0); err != nil {
		return err
	}
	s.out.SetVersion(2)
	s.client.name.Store(&noText)
	c.out.Simple("RESET")
	return nil
}

func foreignProtocol(s *Session, c *call) error {
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

func helloCommand(s *Session, c *call) error {
	version := int64(s.out.Version())
	next := 1
	if len(c.args) > 1 {
		var ok bool
		if version, ok = parseInt(c.arg(1)); !ok {
			return errProtoNotInteger
		}
		if version != 2 && version != 3 {
			return errNoProto
		}
		next = 2
	}
	var name []byte
	for ; next < len(c.args); next++ {
		more := len(c.args) - next - 1
		switch {
		case c.is(next, "auth") && more >= 2:
			// There are no passwords yet: the default user is open, as in Redis without a configuration.
			if string(c.arg(next+1)) != "default" {
				return replyError("WRONGPASS invalid username-password pair or user is disabled.")
			}
			next += 2
		case c.is(next, "setname") && more >= 1:
			name = c.arg(next + 1)
			if !printable(name) {
				return errInvalidName
			}
			next++
		default:
			return errorf("ERR Syntax error in HELLO option '%s'", clip(c.arg(next), len(c.arg(next))))
		}
	}
	if name != nil {
		if err := s.setName(name); err != nil {
			return err
		}
	}
	s.out.SetVersion(int(version))
	c.out.Map(7)
	for _, pair := range [][2]string{{"server", "redis"}, {"version", RedisVersion}} {
		c.out.BulkString(pair[0])
		c.out.BulkString(pair[1])
	}
	c.out.BulkString("proto")
	c.out.Int(version)
	c.out.BulkString("id")
	c.out.Int(s.id)
	for _, pair := range [][2]string{{"mode", "standalone"}, {"role", "master"}} {
		c.out.BulkString(pair[0])
		c.out.BulkString(pair[1])
	}
	c.out.BulkString("modules")
	c.out.Array(0)
	return nil
}

func clientGetName(s *Session, c *call) error {
	if name := *s.client.name.Load(); name != "" {
		c.out.BulkString(name)
		return nil
	}
	c.out.Null()
	return nil
}

func clientSetInfo(s *Session, c *call) error {
	text := string(c.arg(3))
	switch {
	case c.is(2, "lib-name"):
		if !printable(c.arg(3)) {
			return replyError("ERR lib-name cannot contain spaces, newlines or special characters.")
		}
		s.client.library.Store(&text)
	case c.is(2, "lib-ver"):
		if !printable(c.arg(3)) {
			return replyError("ERR lib-ver cannot contain spaces, newlines or special characters.")
		}
		s.client.version.Store(&text)
	default:
		return errorf("ERR Unrecognized option '%s'", clip(c.arg(2), maxQuoted))
	}
	return c.ok()
}

func clientInfo(s *Session, c *call) error {
	s.flushStats()
	c.out.Verbatim("txt", s.listLine(time.Now())+"\n")
	return nil
}

func clientList(s *Session, c *call) error {
	var wanted map[int64]bool
	kind := ""
	switch {
	case len(c.args) == 2:
	case len(c.args) == 4 && c.is(2, "type"):
		if kind = strings.ToLower(string(c.arg(3))); !isClientType(kind) {
			return errorf("ERR Unknown client type '%s'", clip(c.arg(3), maxQuoted))
		}
	case len(c.args) > 3 && c.is(2, "id"):
		wanted = make(map[int64]bool)
		for _, arg := range c.args[3:] {
			id, ok := parseInt(arg)
			if !ok || id < 1 {
				return replyError("ERR Invalid client ID")
			}
			wanted[id] = true
		}
	default:
		return errSyntax
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
	c.out.Verbatim("txt", lines.String())
	return nil
}
