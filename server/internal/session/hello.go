package session

import (
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/shared"
)

// hello is what HELLO asks for. A HELLO without arguments asks for the protocol version that holds already.
type hello struct {
	version        int64
	name           []byte // nil: none
	user, password string
	authenticates  bool
}

// parse reads the arguments. version must be set before to the one that holds. Options may come in any order and more
// than once; the last holds. An option without its values is an unknown one to Redis, and so it is here.
func (h *hello) parse(c *command.Call) error {
	next := 1
	if len(c.Args) > 1 {
		var ok bool
		if h.version, ok = number.ParseInt(c.Arg(1)); !ok {
			return errProtoNotInteger
		}
		if h.version != 2 && h.version != 3 {
			return errNoProto
		}
		next = 2
	}
	for ; next < len(c.Args); next++ {
		more := len(c.Args) - next - 1
		switch {
		case c.Args.Is(next, "auth") && more >= 2:
			h.user, h.password, h.authenticates = c.Key(next+1), c.Key(next+2), true
			next += 2
		case c.Args.Is(next, "setname") && more >= 1:
			h.name = c.Arg(next + 1)
			if err := clients.CheckText(h.name, "Client names"); err != nil {
				return err
			}
			next++
		default:
			return command.Errorf("ERR Syntax error in HELLO option '%s'", command.Clip(c.Arg(next), len(c.Arg(next))))
		}
	}
	return nil
}

// errHelloNoAuth answers HELLO of a client that has to authenticate first.
const errHelloNoAuth command.Error = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> " +
	"option can be used to authenticate the client and select the RESP protocol version at the same time"

// helloCommand is HELLO. Everything is checked before anything is changed. The reply is already in
// the version that it chooses: a map in RESP3, a flat array in RESP2. The server calls itself redis,
// and names a version of Redis, because clients choose their features by these.
func helloCommand(s *Session, c *command.Call) error {
	h := hello{version: int64(s.out.Version())}
	if err := h.parse(c); err != nil {
		return err
	}
	if h.authenticates {
		if err := s.authenticate(c.Host.Context, c.Key(0), h.user, h.password); err != nil {
			return err
		}
	}
	if !s.who.authenticated && !s.who.becomeDefault() {
		return errHelloNoAuth
	}
	if h.name != nil {
		if err := s.client.SetName(h.name); err != nil {
			return err
		}
	}
	role := "master"
	if s.server.Following.IsReplica() {
		role = "replica"
	}
	s.out.SetVersion(int(h.version))
	return c.Reply([]command.Fact{
		{Name: "server", Value: "redis"}, {Name: "version", Value: shared.RedisVersion}, {Name: "proto", Value: h.version}, {Name: "id", Value: s.id},
		{Name: "mode", Value: s.server.ModeName()}, {Name: "role", Value: role}, {Name: "modules", Value: []any{}},
	})
}
