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
		{"the largest", &v.counters.Evicted, func(s *Session) {
			v.tunables.clientMemory.Store(1000)
			if v.accountMemory(s, 2000) {
				v.evictLargestClients()
			}
		}},
		{"silent", &v.counters.Evicted, func(s *Session) {
			s.out.SetBudget(&v.replies.Budget)
			s.out.Bulk(make([]byte, 4<<20))
			s.client.unread.Note(s.out.Taken(), 0)
			v.replies.silentAfter = -time.Second
			v.closeSilent()
		}},
		{"for its output", &v.counters.Flooded, func(s *Session) { v.endForOutput(&s.client) }},
		{"a subscriber, for its messages", &v.counters.Flooded, func(s *Session) { s.subscriber.Flooded() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := v.NewSession()
			defer s.Close()
			v.register(s)
			defer v.unregister(s)
			before, seen := c.counter.Load(), int64(-1)
			s.client.kill = func() { seen = c.counter.Load() }
			s.client.abort = s.client.kill
			c.end(s)
			if seen != before+1 {
				t.Errorf("counted %d before, %d when the connection ends", before, seen)
			}
		})
	}
}
