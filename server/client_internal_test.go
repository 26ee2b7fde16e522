package server

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

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
		{"the largest", &v.state.counters.Evicted, func(s *Session) {
			v.state.tunables.clientMemory.Store(1000)
			if s.accountMemory(2000) {
				v.state.evictLargestClients()
			}
		}},
		{"silent", &v.state.counters.Evicted, func(s *Session) {
			s.out.SetBudget(&v.state.replies.Budget)
			s.out.Bulk(make([]byte, 4<<20))
			s.client.unread.Note(s.out.Taken(), 0)
			v.state.replies.silentAfter = -time.Second
			v.state.closeSilent()
		}},
		{"for its output", &v.state.counters.Flooded, func(s *Session) { v.state.endForOutput(&s.client) }},
		{"a subscriber, for its messages", &v.state.counters.Flooded, func(s *Session) { s.subscriber.Flooded() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := v.NewSession()
			defer s.Close()
			v.state.clients.add(&s.client)
			defer v.state.clients.remove(&s.client)
			before, seen := c.counter.Load(), int64(-1)
			s.client.attach(&Driver{Wake: func() {}, Kill: func() { seen = c.counter.Load() }})
			c.end(s)
			if seen != before+1 {
				t.Errorf("counted %d before, %d when the connection ends", before, seen)
			}
		})
	}
}
