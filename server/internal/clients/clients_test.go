package clients

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
)

// newClient is that of a session without a driver.
func newClient(id int64) *Client {
	c := new(Client)
	c.Init()
	c.Tracking.ID, c.Tracking.Mail = id, new(pubsub.Subscriber)
	c.User.Store(acl.New(command.NewTable(nil)).Default())
	return c
}

// TestWaitEndsOnce: of several that give a wait up one succeeds, and its way is how it has ended.
func TestWaitEndsOnce(t *testing.T) {
	w := NewWait(time.Now().Add(time.Hour))
	if end := w.Poll(); end != NotEnded {
		t.Fatalf("a wait that has begun ended with %d", end)
	}
	var succeeded atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if w.GiveUp(Unblocked) {
				succeeded.Add(1)
			}
		})
	}
	wg.Wait()
	if succeeded.Load() != 1 || w.Poll() != Unblocked {
		t.Errorf("%d succeeded, it ended with %d", succeeded.Load(), w.Poll())
	}
	if late := NewWait(time.Now().Add(-time.Second)); late.Poll() != TimedOut || late.GiveUp(Unblocked) {
		t.Error("a wait whose time is over has not ended by that")
	}
}

// TestEndWait: others end the wait of a client, once, and wake its driver, and tell whether it waited in a command.
func TestEndWait(t *testing.T) {
	c, woken := newClient(1), 0
	c.Attach(&Driver{Wake: func() { woken++ }, Kill: func() {}})
	if c.EndWait(TimedOut) || c.IsPostponed() {
		t.Error("a client that does not wait was ended")
	}
	w := NewPostponement(time.Now().Add(time.Hour))
	c.Wait.Store(w)
	if !c.IsPostponed() || !c.EndWait(TimedOut) || c.EndWait(TimedOut) || woken != 1 || w.Poll() != TimedOut {
		t.Errorf("woken %d times, ended with %d", woken, w.Poll())
	}
	select {
	case <-w.Ended:
	default:
		t.Error("who waits in Session.Wait is not told")
	}
}

// TestKillOnce: a connection is ended and counted once; without one nothing happens.
func TestKillOnce(t *testing.T) {
	var counter atomic.Int64
	c, killed := newClient(1), 0
	if c.KillOnce(&counter) || counter.Load() != 0 {
		t.Error("a client without a connection was ended")
	}
	c.Attach(&Driver{Wake: func() {}, Kill: func() { killed++ }})
	if !c.KillOnce(&counter) || c.KillOnce(&counter) || counter.Load() != 1 || killed != 1 {
		t.Errorf("counted %d, ended %d times", counter.Load(), killed)
	}
}

// TestList: by age, without those that were killed for who is told of them.
func TestList(t *testing.T) {
	var l List
	for range 3 {
		c := newClient(l.NewID())
		c.Attach(&Driver{Wake: func() {}, Kill: func() {}})
		l.Add(c)
	}
	l.Get(2).Kill()
	if all := l.All(); len(all) != 3 || all[0].ID() != 1 || all[2].ID() != 3 {
		t.Errorf("all are %v", all)
	}
	if listed := l.Listed(); len(listed) != 2 || listed[1].ID() != 3 || l.Get(2) != nil || l.Tracking(2) != nil {
		t.Error("one that was killed is told of")
	}
	gone := l.Get(1)
	l.Remove(gone)
	l.Remove(gone)
	if len(l.All()) != 2 || l.NewID() != 4 {
		t.Error("a client that is gone is in the list, or its id comes again")
	}
}

// TestLine: names that would break the line are refused, and what a client is at has its letter.
func TestLine(t *testing.T) {
	c := newClient(7)
	for _, name := range []string{"a b", "a\nb", "\x7f", strings.Repeat("x", maxClientText+1)} {
		if err := c.SetName([]byte(name)); err == nil {
			t.Errorf("the name %.10q was taken", name)
		}
	}
	if err := c.SetName([]byte("worker")); err != nil {
		t.Error(err)
	}
	if line := c.ListLine(time.Now()); !strings.HasPrefix(line, "id=7 ") || !strings.Contains(line, " name=worker ") || !strings.Contains(line, " flags=N ") {
		t.Error(line)
	}
	c.NoEvict.Store(true)
	c.NoteCommand(&command.Command{Name: "exec"}, time.Now(), 3, 3, 2)
	if line := c.ListLine(time.Now()); !strings.Contains(line, " flags=xe db=3 ") || !strings.Contains(line, " multi=2 ") || !strings.Contains(line, " cmd=exec ") || !strings.Contains(line, " resp=3 ") {
		t.Error(line)
	}
}
