package transport

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/session"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/socket"
)

// New returns the connections of a listener, of which there are none. newSession makes their sessions; ctx ends when they
// are to. local says that only this machine can reach the listener.
func New(ctx context.Context, state *shared.State, newSession func() *session.Session, local bool) *Connections {
	return &Connections{server: state, newSession: newSession, context: ctx, log: state.Options.Logger, public: !local, conns: make(map[*conn]struct{})}
}

// Connections are those of one listener. The type outlives none of them, but for what shutdown does not wait for.
type Connections struct {
	server      *shared.State
	newSession  func() *session.Session
	context     context.Context // ends when the transport does: for commands that take long
	log         *slog.Logger
	public      bool           // other machines can reach the listener
	connections sync.WaitGroup // one for each goroutine that serves a connection, or all of them
	loops       []*eventLoop   // serve the connections that they can; each begins when there is one for it
	visits      visits         // of replicas

	mu       sync.Mutex         // guards conns and open, and the read deadlines against done
	conns    map[*conn]struct{} // those with a goroutine of their own
	open     int                // connections of this listener
	left     chan struct{}      // closed when the last connection has ended; nil before linger
	stopping atomic.Bool        // shutting down: no new connections, no new commands
}

// Accept takes connections until the listener is closed: no error of the system ends it, see socket.Steady.
func (t *Connections) Accept(ctx context.Context, ln net.Listener) error {
	ln = socket.Steady(ctx, ln, t.log)
	for {
		c, err := ln.Accept()
		switch {
		case err == nil:
			t.start(c)
		case ctx.Err() != nil:
			return nil
		default: // somebody else than the server has closed it, or a change of addresses
			return fmt.Errorf("accepting connections on %s: %w", ln.Addr(), err)
		}
	}
}

// adopt gives a connection to the event loop that has the fewest, if the options choose that and the connection has a
// descriptor that a loop can wait for.
func (t *Connections) adopt(nc net.Conn, s session.Link) bool {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return false
	}
	if !t.server.Options.EventLoop {
		return false
	}
	var loop *eventLoop
	for _, l := range t.loops {
		if loop == nil || l.served.Load() < loop.served.Load() {
			loop = l
		}
	}
	if loop == nil || loop.served.Load() > 0 && len(t.loops) < t.server.Options.Loops {
		switch l, err := newEventLoop(t); {
		case err == nil:
			loop, t.loops = l, append(t.loops, l)
			t.connections.Go(loop.run)
		case loop == nil:
			t.log.Warn("no event loop; a goroutine serves the connection", "error", err)
			return false
		}
	}
	return loop.adopt(nc, s)
}

// start serves a connection, or turns it away.
func (t *Connections) start(nc net.Conn) {
	v := t.server
	if t.public && !v.Users.Default().Rules().NeedsPassword() && !socket.IsLocal(nc.RemoteAddr()) {
		v.Counters.Rejected.Add(1)
		t.turnAway(nc, "DENIED connections from other machines are accepted only while the default user needs a password: CONFIG SET requirepass, or ACL SETUSER default")
		return
	}
	needsSlot := v.Users.Default().Rules().NeedsPassword() || socket.IsTLS(nc)
	if reason := t.admit(needsSlot); reason != "" {
		v.Counters.Rejected.Add(1)
		t.turnAway(nc, "ERR "+reason)
		return
	}
	v.Counters.Connections.Add(1)
	if tcp, ok := socket.Raw(nc).(*net.TCPConn); ok {
		// Failing to set it costs the detection of dead peers, no more.
		_ = tcp.SetKeepAliveConfig(t.keepAlive())
	}
	s := t.newSession().Connect(session.Connection{
		Remote: nc.RemoteAddr().String(), Local: nc.LocalAddr().String(), IsTLS: socket.IsTLS(nc), IsRemote: !socket.IsLocal(nc.RemoteAddr()),
		HasSlot: needsSlot, Context: t.context,
	})
	if !t.adopt(nc, s) {
		t.serveByGoroutine(nc, s)
	}
}

// keepAlive is how the system probes whether the other end of an idle connection is still there.
func (t *Connections) keepAlive() net.KeepAliveConfig {
	period := time.Duration(t.server.Tunables.KeepAlive.Load()) * time.Second
	return net.KeepAliveConfig{Enable: period > 0, Idle: period, Interval: max(period/3, time.Second), Count: 3}
}

// turnAway ends a connection with an error: a courtesy that must not hold up others, one short write, then the end,
// whatever becomes of it. A client of TLS gets none, for that would take a handshake.
func (t *Connections) turnAway(nc net.Conn, text string) {
	if !socket.IsTLS(nc) {
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = nc.Write([]byte("-" + text + "\r\n"))
	}
	_ = socket.Raw(nc).Close()
}

// serveByGoroutine starts a goroutine for a connection.
func (t *Connections) serveByGoroutine(nc net.Conn, s session.Link) {
	c := &conn{Conn: nc, transport: t, session: s}
	raw := socket.Raw(nc)
	s.Attach(socket.Number(nc), &clients.Driver{Wake: c.wake, Kill: func() { _ = raw.Close() }, Probe: socket.ProbeOf(nc)})
	t.mu.Lock()
	t.conns[c] = struct{}{}
	t.mu.Unlock()
	t.server.Clients.Add(s.Client())
	t.connections.Go(c.serve)
}

// admit makes room for a connection, or says why there is none. Stopping and the count are looked at under one lock: no
// connection is admitted after shutdown has begun to wait for the last one.
func (t *Connections) admit(needsSlot bool) (reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping.Load() {
		return "the server is shutting down"
	}
	if reason = t.server.TakePlace(needsSlot); reason == "" {
		t.open++
	}
	return reason
}

// forget is the end of what admit and register began, for a connection that is closed.
func (t *Connections) forget(s session.Link) {
	s.Release()
	t.server.Open.Add(-1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open--; t.open == 0 && t.left != nil {
		close(t.left)
	}
}

// Linger waits, when no connection comes any more, until the last one has ended, or ctx. Connections of a listener that a
// change of addresses has retired go on for as long as their clients like.
func (t *Connections) Linger(ctx context.Context) {
	t.mu.Lock()
	if t.open == 0 {
		t.mu.Unlock()
		return
	}
	left := make(chan struct{})
	t.left = left
	t.mu.Unlock()
	select {
	case <-left:
	case <-ctx.Done():
	}
}
