package shared

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/pubsub"
)

func newTestState(t *testing.T) *State {
	v := New(dbtest.New(t), command.NewTable(command.Data()), Options{Logger: slog.New(slog.DiscardHandler), MaxReply: 1 << 20})
	v.Tunables.Init(20, 0, 0)
	v.Replies.Init(0)
	return v
}

// TestPauseNeverShrinks: a pause that is not over becomes longer and stricter, never the reverse, and ends by its time.
func TestPauseNeverShrinks(t *testing.T) {
	var p pause
	now := time.Now()
	p.Begin(now.Add(time.Hour), true)
	p.Begin(now.Add(time.Minute), false)
	if until, all := p.State(); !until.Equal(now.Add(time.Hour)) || !all {
		t.Errorf("until %v, all %v", until, all)
	}
	p.end()
	p.Begin(now.Add(time.Minute), false)
	if until, all := p.State(); !until.Equal(now.Add(time.Minute)) || all {
		t.Errorf("after its end: until %v, all %v", until, all)
	}
	p.end()
	p.Begin(now.Add(-time.Second), true)
	if until, _ := p.State(); !until.IsZero() || p.Active.Load() {
		t.Error("a pause whose time is over goes on")
	}
}

// TestPlaces: no more connections than maxclients, and of these a tenth that have not authenticated.
func TestPlaces(t *testing.T) {
	v := newTestState(t)
	for i := range 2 {
		if reason := v.TakePlace(true); reason != "" {
			t.Fatalf("slot %d: %s", i, reason)
		}
	}
	if reason := v.TakePlace(true); !strings.Contains(reason, "have not authenticated") || v.Open.Load() != 2 {
		t.Errorf("a third slot: %q, %d open", reason, v.Open.Load())
	}
	for v.Open.Load() < 20 {
		if reason := v.TakePlace(false); reason != "" {
			t.Fatal(reason)
		}
	}
	if reason := v.TakePlace(false); reason != "max number of clients reached" || v.Open.Load() != 20 {
		t.Errorf("a client too many: %q, %d open", reason, v.Open.Load())
	}
}

// TestErrorText: the first word says what kind of failure it is, and no text names a file.
func TestErrorText(t *testing.T) {
	v := newTestState(t)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{command.ErrSyntax, "ERR syntax error"},
		{db.ErrNotFound, string(command.ErrNoKey)},
		{errors.Join(db.ErrNoSpace, syscall.EDQUOT), "MISCONF Stave cannot write: the disk quota is used up"},
		{db.ErrFailed, "MISCONF Stave refuses writes"},
		{db.ErrReadOnly, "READONLY "},
		{syscall.EMFILE, "MISCONF Stave cannot use its files: "},
		{errors.New("something"), "ERR something"},
	} {
		if got := v.ErrorText(tt.err); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}

// TestUnsynced: the newest commit is waited for, and replies from the oldest one on are held.
func TestUnsynced(t *testing.T) {
	var u Unsynced
	u.Hold(5, 100)
	u.Hold(7, 200)
	u.Hold(6, 300)
	if u.Ticket != 7 || u.From != 100 {
		t.Errorf("%+v", u)
	}
	u.Ticket = 0
	if u.Hold(8, 400); u.From != 400 {
		t.Errorf("after the wait: %+v", u)
	}
}

// TestEvictLargestClientsAtOnce: several that find too much memory in use close no more clients than it takes, also of clients
// that hold the same.
func TestEvictLargestClientsAtOnce(t *testing.T) {
	const all, most, each = 100, 40_000, 1000
	for range 20 {
		v := newTestState(t)
		v.Tunables.ClientMemory.Store(most)
		for i := range all {
			c := new(clients.Client)
			c.Init()
			c.Tracking.ID, c.Tracking.Mail = v.Clients.NewID(), new(pubsub.Subscriber)
			c.Attach(&clients.Driver{Wake: func() {}, Kill: func() { time.Sleep(10 * time.Microsecond) }})
			v.Clients.Add(c)
			v.AccountMemory(c, each+i*i%3)
		}
		var evicting sync.WaitGroup
		for range 4 {
			evicting.Go(v.EvictLargestClients)
		}
		evicting.Wait()
		left := int64(0)
		for _, c := range v.Clients.All() {
			if !c.Killed.Load() {
				left += c.BufferBytes.Load()
			}
		}
		if left > most || left < most-each-2 {
			t.Fatalf("%d clients of %d are closed, the others hold %d bytes of %d", v.Counters.Evicted.Load(), all, left, most)
		}
	}
}
