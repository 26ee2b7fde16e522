package transport

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/scripting"
	"github.com/stavedb/stave/server/internal/session"
	"github.com/stavedb/stave/server/internal/shared"
)

// TestLateWakeup: a post that has found the loop asleep writes to the eventfd. If something else wakes the loop
// meanwhile, and the server shuts down, the descriptor stays open until then: its number could be a store's file by
// now.
func TestLateWakeup(t *testing.T) {
	v, newSession := newServer(t)
	tr := New(context.Background(), v, newSession, true)
	client, accepted := socketPair(t)
	tr.start(accepted)
	if _, err := client.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	for tr.loops[0].mu.Lock(); !tr.loops[0].sleeping; tr.loops[0].mu.Lock() {
		tr.loops[0].mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	if !tr.loops[0].beginWakeAndUnlock() {
		t.Fatal("the loop does not sleep")
	}
	ended := make(chan struct{})
	go func() { tr.Shutdown(); close(ended) }()
	if err := client.Close(); err != nil { // wakes the loop
		t.Fatal(err)
	}
	select {
	case <-ended:
		t.Error("the loop has ended while a post is about to write to its descriptor")
	case <-time.After(100 * time.Millisecond):
	}
	tr.loops[0].endWake()
	<-ended
}

// TestFewestConnections: a loop begins when each has a connection, up to their number; then a connection goes to the loop that
// has the fewest.
func TestFewestConnections(t *testing.T) {
	v, newSession := newServer(t)
	v.Options.Loops = 3
	tr := New(context.Background(), v, newSession, true)
	connect := func() net.Conn {
		client, accepted := socketPair(t)
		tr.start(accepted)
		return client
	}
	served := func() (counts []int64) {
		for _, l := range tr.loops {
			counts = append(counts, l.served.Load())
		}
		return counts
	}
	var clients []net.Conn
	for _, want := range [][]int64{{1}, {1, 1}, {1, 1, 1}, {2, 1, 1}, {2, 2, 1}, {2, 2, 2}} {
		clients = append(clients, connect())
		if got := served(); !slices.Equal(got, want) {
			t.Errorf("%d connections: %d, want %d", len(clients), got, want)
		}
	}
	for _, i := range []int{1, 4} { // the second loop's
		_ = clients[i].Close()
	}
	for deadline := time.Now().Add(10 * time.Second); !slices.Equal(served(), []int64{2, 0, 2}); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("connections: %d", served())
		}
	}
	connect()
	if got := served(); !slices.Equal(got, []int64{2, 1, 2}) {
		t.Errorf("connections: %d", got)
	}
	tr.Shutdown()
	if got := served(); !slices.Equal(got, []int64{0, 0, 0}) {
		t.Errorf("connections after the end: %d", got)
	}
}

// socketPair are two ends of a connection.
func socketPair(t *testing.T) (client, accepted net.Conn) {
	t.Helper()
	ln, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	if client, err = net.Dial("unix", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if accepted, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, accepted
}

// TestPostBeforeSleep: a loop that is about to sleep does not, if something was posted since it looked; who posted that
// has seen it awake and does not wake it.
func TestPostBeforeSleep(t *testing.T) {
	l, err := newEventLoop(&Connections{})
	if err != nil {
		t.Fatal(err)
	}
	l.round++
	l.takePosted()
	l.post(&loopConn{loop: l, known: true}, markWoken)
	awake := make(chan struct{})
	go func() {
		l.wait()
		l.poller.Close()
		close(awake)
	}()
	select {
	case <-awake:
	case <-time.After(10 * time.Second):
		t.Fatal("the loop sleeps though a post waits for it")
	}
	if l.takePosted(); len(l.ready) != 1 {
		t.Errorf("%d connections are ready, want the one that was posted", len(l.ready))
	}
}

// TestRoundTakesFewPosts: however many connections are woken at once, a round takes part of them, in the order in which
// they were woken, so that others do not wait for all; and the loop does not sleep before it has taken the last.
func TestRoundTakesFewPosts(t *testing.T) {
	const posted = 10*roundPosts + 1
	l := &eventLoop{transport: &Connections{}}
	conns := make([]*loopConn, posted)
	for i := range conns {
		conns[i] = &loopConn{loop: l, known: true}
		l.post(conns[i], markWoken)
	}
	next := 0
	for round := 1; next < posted; round++ {
		if l.round++; !l.news {
			t.Fatalf("after %d of %d connections the loop would sleep", next, posted)
		}
		l.takePosted()
		if len(l.ready) == 0 || len(l.ready) > roundPosts {
			t.Fatalf("round %d has %d connections, want at most %d", round, len(l.ready), roundPosts)
		}
		for _, c := range l.ready {
			if c != conns[next] {
				t.Fatalf("connection %d is not the next one", next)
			}
			next++
		}
		l.ready = l.ready[:0]
	}
	if l.news || len(l.posted) > 0 {
		t.Errorf("%d connections are left", len(l.posted))
	}
}

// newServer returns what sessions share, and a maker of sessions.
func newServer(t *testing.T) (*shared.State, func() *session.Session) {
	store := dbtest.New(t)
	table := command.NewTable(command.Data(), session.Commands())
	v := shared.New(store, table, shared.Options{
		EventLoop: true, MaxArgument: 1 << 20, MaxReply: 64 << 20, MaxQueue: 1 << 20, PartialTimeout: time.Minute, WriteTimeout: time.Minute,
		ShutdownGrace: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	v.Tunables.Init(100, 0, 1<<30)
	v.Replies.Init(1 << 30)
	v.Users = acl.New(table)
	scripts := new(scripting.Shared)
	scripts.Init(v)
	return v, func() *session.Session { return session.New(v, scripts) }
}
