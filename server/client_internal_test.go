package server

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/server/internal/clients"

	"github.com/stavedb/stave/db"
)

// TestEndIsCountedBeforeItIsSeen: a client that the server has ended, or another that learns of it, finds it counted.
func TestEndIsCountedBeforeItIsSeen(t *testing.T) {
	store, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	v, err := New(store, &Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		counter *atomic.Int64
		end     func(s *Session)
	}{
		{"the largest", &v.state.Counters.Evicted, func(s *Session) {
			v.state.Tunables.ClientMemory.Store(1000)
			if (Link{s}).Account(2000) {
				v.state.EvictLargestClients()
			}
		}},
		{"silent", &v.state.Counters.Evicted, func(s *Session) {
			s.out.SetBudget(&v.state.Replies.Budget)
			s.out.Bulk(make([]byte, 4<<20))
			s.client.Unread.Note(s.out.Taken(), 0)
			v.state.Replies.SilentAfter = -time.Second
			v.state.CloseSilent()
		}},
		{"for its output", &v.state.Counters.Flooded, func(s *Session) { v.state.EndForOutput(&s.client) }},
		{"a subscriber, for its messages", &v.state.Counters.Flooded, func(s *Session) { s.subscriber.Flooded() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := v.NewSession()
			defer s.Close()
			v.state.Clients.Add(&s.client)
			defer v.state.Clients.Remove(&s.client)
			before, seen := c.counter.Load(), int64(-1)
			s.client.Attach(&clients.Driver{Wake: func() {}, Kill: func() { seen = c.counter.Load() }})
			c.end(s)
			if seen != before+1 {
				t.Errorf("counted %d before, %d when the connection ends", before, seen)
			}
		})
	}
}
