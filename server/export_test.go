package server

import (
	"context"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/gate"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/scripting"
	"github.com/stavedb/stave/server/internal/session"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/transport"
)

// AddPanics adds commands that panic, one outside of and one within a transaction, and returns how to take them away.
// Servers are to be made after it and used before that.
func AddPanics() (remove func()) {
	boom := func(c *command.Call) error {
		if c.Tx != nil {
			if _, err := c.Tx.String(c.Key(1)).Append([]byte("half")); err != nil {
				return err
			}
		}
		c.Out.Simple("half a reply")
		panic("boom")
	}
	one := []command.Keys{{Use: "RW", First: 1, Step: 1}}
	// Two wait for a list: one panics when it is given an element, one when it replies with it.
	blocking := func(name string, give func(*db.Tx, string), reply func(*command.Call)) *command.Command {
		return &command.Command{Name: name, Arity: 2, Flags: command.Write | command.Blocking, Keys: one, Run: func(c *command.Call) error {
			w := db.Wait{Keys: []string{c.Key(1)}, Type: db.TypeList, Do: func(tx *db.Tx, key string) error {
				_, err := tx.List(key).PopFront()
				give(tx, key)
				return err
			}}
			return c.Await(w, 0, reply, func(c *command.Call) { c.Out.Null() })
		}}
	}
	before := table
	table = command.NewTable(before.Commands, []*command.Command{
		{Name: "boom", Arity: 1, Run: boom},
		{Name: "boomkey", Arity: 2, Flags: command.Write | command.Fast, Keys: one, Run: boom},
		blocking("boompop", func(*db.Tx, string) { panic("boom") }, func(c *command.Call) { c.Out.Null() }),
		blocking("boomreply", func(*db.Tx, string) {}, func(*command.Call) { panic("boom") }),
	})
	return func() { table = command.NewTable(before.Commands) }
}

// ListensToStore reports whether the server receives events of keys.
func (v *Server) ListensToStore() bool {
	return v.state.ListensToStore()
}

// Asides is how often a session has left an event loop for a command.
func (v *Server) Asides() int64 { return v.state.Counters.Aside.Load() }

// PauseAt sets how many bytes of replies pause a session.
func (v *Server) PauseAt(n int) { v.state.PauseAt = n }

// LastingScripts is how many scripts and functions last, and how many of these have written.
func (v *Server) LastingScripts() (lasting, written int) {
	v.scripts.Runs.Each(func(r *scripting.Run) {
		lasting++
		if r.Wrote.Load() {
			written++
		}
	})
	return lasting, written
}

// TimeToAuth sets how long a connection may take to authenticate.
func (v *Server) TimeToAuth(d time.Duration) { v.state.TimeToAuth = d }

// DefaultTimeToAuth is that of servers.
const DefaultTimeToAuth = shared.DefaultTimeToAuth

// SilentAfter sets how long a client may take nothing of a long reply when others wait for its memory.
func (v *Server) SilentAfter(d time.Duration) { v.state.Replies.SilentAfter = d }

// MostRepliesTaken is how many bytes long replies have taken of their budget at once.
func (v *Server) MostRepliesTaken() int64 { return v.state.Replies.Most() }

// WaitingForRoom is how many sessions wait for room for a reply.
func (v *Server) WaitingForRoom() int {
	return v.state.Replies.InLine()
}

// RepliesTaken is how many bytes long replies have taken of their budget.
func (v *Server) RepliesTaken() int64 { return v.state.Replies.Taken() }

// StartUnknown makes a session that of a client about which nothing is known, as Serve does.
func StartUnknown(s *Session) { s.inner.Connect(session.Connection{Context: context.Background()}) }

// SecretsOf says which arguments of which commands are redacted.
var SecretsOf = redact.Secrets

// NestedIn says which commands have another request among their arguments, for the same purpose.
var NestedIn = redact.Nested

// ReadSize is what a connection reads at a time, into a buffer besides those of its session.
const ReadSize = transport.ReadSize

// Store is the store that the server serves.
func (v *Server) Store() *db.Store { return v.state.Store }

// PlacesInLine sets how many sessions wait in line for locks at most, with few bytes of keys.
func (v *Server) PlacesInLine(n int) {
	v.scripts.Line.Limit(int64(n) * (scripting.PlaceOf([]string{""}) + 64))
}

// ClientLine is the session's line of CLIENT LIST.
func (s *Session) ClientLine() string { return s.inner.Lend().Client.ListLine(time.Now()) }

// CountedBesideSessions is the memory that the server counts and no session does: tracked keys, scripts, the index.
func (v *Server) CountedBesideSessions() int {
	_, scripts := v.scripts.Cache.Usage()
	return int(v.state.Tracked.Held()+v.state.Store.Log().IndexBytes()) + scripts
}

// PublishCommand adds a command to the stream for replicas, which the server itself does not execute.
func (v *Server) PublishCommand(words ...string) {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	v.state.Replicas.Publish(v.state.Replicas.Message(args))
}

// IsReplica reports whether sessions take the server for a replica.
func (v *Server) IsReplica() bool { return v.state.Following.IsReplica() }

// Gate is that of a member of a group.
func (v *Server) Gate() *gate.Gate { return v.state.Gate }

// StopLink ends the link to a master for good.
func (v *Server) StopLink() { v.following.stop() }

// JoinGroup makes a server, which has no session yet, a member of a group with a gate, and returns that.
func (v *Server) JoinGroup() *gate.Gate {
	g := gate.New(group.Now)
	v.state.Gate, v.state.Replicas.Gate = g, g
	if v.state.Following.IsReplica() {
		v.state.Replicas.FollowTerm()
	}
	return g
}

// BeginTerm makes it the primary.
func (v *Server) BeginTerm() error {
	_, err := v.state.Replicas.BeginTerm()
	return err
}

// StreamOffset is how long its stream for replicas is.
func (v *Server) StreamOffset() int64 { return v.state.Replicas.Stream.Position().Offset }

// Libraries is how many libraries of functions it has.
func (v *Server) Libraries() int { return len(v.scripts.Libraries.Current().Names()) }

// StreamID is that of the stream.
func (v *Server) StreamID() string { return v.state.Replicas.Stream.Position().ID }
