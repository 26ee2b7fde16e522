package session

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/scripting"
	"github.com/stavedb/stave/server/internal/shared"
)

// TestEndIsCountedBeforeItIsSeen: a client that the server has ended, or another that learns of it, finds it counted.
func TestEndIsCountedBeforeItIsSeen(t *testing.T) {
	v, newSession := newServer(t)
	for _, c := range []struct {
		name    string
		counter *atomic.Int64
		end     func(s *Session)
	}{
		{"the largest", &v.Counters.Evicted, func(s *Session) {
			v.Tunables.ClientMemory.Store(1000)
			if (Link{s}).Account(2000) {
				v.EvictLargestClients()
			}
		}},
		{"silent", &v.Counters.Evicted, func(s *Session) {
			s.out.SetBudget(&v.Replies.Budget)
			s.out.Bulk(make([]byte, 4<<20))
			s.client.Unread.Note(s.out.Taken(), 0)
			v.Replies.SilentAfter = -time.Second
			v.CloseSilent()
		}},
		{"for its output", &v.Counters.Flooded, func(s *Session) { v.EndForOutput(&s.client) }},
		{"a subscriber, for its messages", &v.Counters.Flooded, func(s *Session) { s.mail.subscriber.Flooded() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession()
			defer s.Close()
			v.Clients.Add(&s.client)
			defer v.Clients.Remove(&s.client)
			before, seen := c.counter.Load(), int64(-1)
			s.client.Attach(&clients.Driver{Wake: func() {}, Kill: func() { seen = c.counter.Load() }})
			c.end(s)
			if seen != before+1 {
				t.Errorf("counted %d before, %d when the connection ends", before, seen)
			}
		})
	}
}

// newServer returns what sessions share, and a maker of sessions.
func newServer(t *testing.T) (*shared.State, func() *Session) {
	store := dbtest.New(t)
	table := command.NewTable(command.Data(), Commands())
	v := shared.New(store, table, shared.Options{
		EventLoop: true, MaxArgument: 1 << 20, MaxReply: 64 << 20, MaxQueue: 1 << 20, PartialTimeout: time.Minute, WriteTimeout: time.Minute,
		ShutdownGrace: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	v.Tunables.Init(100, 0, 1<<30)
	v.Replies.Init(1 << 30)
	v.Users = acl.New(table)
	scripts := new(scripting.Shared)
	scripts.Init(v)
	return v, func() *Session { return New(v, scripts) }
}
