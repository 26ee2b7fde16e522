package session

import (
	"context"
	"testing"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/socket"
)

// calls counts what a driver was asked for.
type calls struct{ woken, killed, probed int }

func (n *calls) driver() *clients.Driver {
	return &clients.Driver{
		Wake: func() { n.woken++ }, Kill: func() { n.killed++ },
		Probe: func() socket.State { n.probed++; return socket.Broken },
	}
}

// TestAnotherDriver: a session that was handed to another driver, also while its command waits, wakes, ends and looks at
// the connection by that one only.
func TestAnotherDriver(t *testing.T) {
	v, newSession := newServer(t)
	connect := func(n *calls) Link {
		l := newSession().Connect(Connection{Remote: "127.0.0.1:1", Local: "127.0.0.1:2", Context: context.Background()})
		l.Attach(7, n.driver())
		v.Clients.Add(l.Client())
		t.Cleanup(func() { l.Close(); l.Release() })
		return l
	}
	do := func(l Link, words ...string) string {
		l.Feed(resp.AppendCommandStrings(nil, words...))
		out := string(l.Output())
		l.Flushed(len(out))
		return out
	}
	var first, second, others calls
	l, other := connect(&first), connect(&others)
	do(l, "SUBSCRIBE", "c")
	do(other, "PUBLISH", "c", "m")
	if first.woken != 1 || second.woken != 0 {
		t.Fatalf("before the change: first %+v, second %+v", first, second)
	}
	l.Attach(8, second.driver())
	l.Resume() // for a wake-up that went to the first one
	if out := do(l, "UNSUBSCRIBE"); len(out) == 0 {
		t.Error("the message of before did not arrive")
	}
	if out := do(l, "BLPOP", "k", "0"); out != "" || !l.Blocked() {
		t.Fatalf("BLPOP replied %q", out)
	}
	var third calls
	l.Attach(9, third.driver())
	do(other, "RPUSH", "k", "x")
	if third.woken != 1 || second.woken != 0 {
		t.Errorf("the end of a wait woke the wrong driver: second %+v, third %+v", second, third)
	}
	l.Resume()
	if got := string(l.Output()); got != "*2\r\n$1\r\nk\r\n$1\r\nx\r\n" {
		t.Errorf("BLPOP replied %q", got)
	}
	l.Flushed(len(l.Output()))
	if state := l.Client().Probe(); state != socket.Broken || third.probed != 1 {
		t.Errorf("looked at %v, third %+v", state, third)
	}
	l.Client().Kill()
	if third.killed != 1 || first.killed+second.killed != 0 || !l.Client().Killed.Load() {
		t.Errorf("killed by first %+v, second %+v, third %+v", first, second, third)
	}
}
