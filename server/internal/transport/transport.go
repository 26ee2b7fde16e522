package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/server/internal/session"

	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/shared"

	"github.com/stavedb/stave/server/internal/socket"
)

// The transport's constants.
const (
	ReadSize       = 16 << 10        // bytes of one read while reads are small
	maxReadSize    = 256 << 10       // bytes of one read once a client sends much
	keepReadBuffer = 2 * time.Second // that it keeps such a buffer when it sends nothing more
	writeSize      = 256 << 10       // bytes of one write; each has its own time-out
	coarseSecond   = time.Second     // deadlines are renewed this often, not at each read and write
)

// New returns the transport of a listener. New makes the sessions; ctx ends when the transport is to.
func New(state *shared.State, newSession func() *session.Session, ctx context.Context, local bool) *Connections {
	return &Connections{server: state, newSession: newSession, context: ctx, log: state.Options.Logger, public: !local, conns: make(map[*conn]struct{})}
}

// Connections is the connections of one listener. It outlives none of them, but for what shutdown does not wait for.
type Connections struct {
	server      *shared.State
	newSession  func() *session.Session
	context     context.Context // ends when the transport does: for commands that take long
	log         *slog.Logger
	public      bool           // other machines can reach the listener
	connections sync.WaitGroup // one for each goroutine that serves a connection, or all of them
	loop        *eventLoop     // serves the connections that it can; nil before the first of them

	mu       sync.Mutex         // guards conns and open, and the read deadlines against done
	conns    map[*conn]struct{} // those with a goroutine of their own
	open     int                // connections of this listener
	left     chan struct{}      // closed when the last connection has ended; nil before linger
	stopping atomic.Bool        // shutting down: no new connections, no new commands
}

// conn is one connection and its session. Its goroutine reads, feeds the session, and writes the
// output; nobody else touches the session.
//
// Another goroutine that has something for it (a message, the end of a wait) calls wake, which sets
// a read deadline in the past: the read fails, serve finds the reason, and the session goes on. So
// a connection needs one goroutine, and an idle one nothing but a blocked read.
type conn struct {
	net.Conn
	transport *Connections
	session   session.Link
	buf       []byte
	shrink    *time.Timer // wakes the connection when buf has been large for long; nil: it never was
	readBy    time.Time   // the read deadline that is set; zero for none
	writeBy   time.Time   // the write deadline that is set
	woken     bool        // the session has to Resume; guarded by transport.mu
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

// adopt gives a connection to the event loop, if the options choose that and the connection has a
// descriptor that the loop can wait for. The loop begins with the first of them.
func (t *Connections) adopt(nc net.Conn, s session.Link) bool {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return false
	}
	if !t.server.Options.EventLoop {
		return false
	}
	if t.loop == nil {
		loop, err := newEventLoop(t)
		if err != nil {
			t.log.Warn("no event loop; a goroutine serves the connection", "error", err)
			return false
		}
		t.loop = loop
		t.connections.Go(loop.run)
	}
	return t.loop.adopt(nc, s)
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

// serve is the life of a connection: read, execute, write, until either side ends it. What was read together with an
// error is executed first: a client may send and close. Resume follows each Feed, also when nothing was read, because a
// wake-up says only that there may be something to do.
func (c *conn) serve() {
	defer c.end()
	if !c.handshake() {
		return
	}
	c.buf = make([]byte, ReadSize)
	for {
		n, err := c.read()
		interrupted := err != nil && c.interrupted(err)
		if n > 0 {
			c.transport.server.Counters.In.Add(int64(n))
			c.transport.server.Counters.Reads.Add(1)
		}
		if n > 0 || interrupted || err == nil {
			c.session.Feed(c.buf[:n])
			c.session.Resume()
			c.accountMemory() // while the replies are there, and again when they are not
			if !c.flush() || c.session.Closed() {
				return
			}
			c.resizeBuffer(n)
			c.accountMemory()
		}
		if err != nil && !interrupted || c.transport.stopping.Load() {
			return
		}
	}
}

// read waits for bytes. A connection between commands may wait for ever (or Options.IdleTimeout);
// one that has begun a command owes the rest.
func (c *conn) read() (int, error) {
	var by time.Time
	if c.session.Blocked() {
		return c.readBlocked()
	}
	if c.session.Partial() {
		by = c.session.PartialDeadline(c.session.Owes(time.Now()))
	} else {
		// As in Redis a subscriber may listen for ever.
		if idle := time.Duration(c.transport.server.Tunables.IdleTimeout.Load()); idle > 0 && !c.session.Listens() {
			by = time.Now().Add(idle)
		}
	}
	authenticateBy := c.session.AuthenticateBy()
	by = earlier(by, authenticateBy)
	if by.IsZero() != c.readBy.IsZero() || c.readBy.Before(by) || c.readBy.Sub(by) > coarseSecond {
		if !by.IsZero() && by != authenticateBy {
			by = by.Add(coarseSecond) // so that the next reads need not set it
		}
		if err := c.setReadDeadline(by); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(c.buf)
}

// earlier returns the earlier of two deadlines; a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// setReadDeadline sets the deadline unless the transport is stopping: then the deadline is what
// wakes the connection, and must stay.
func (c *conn) setReadDeadline(by time.Time) error {
	c.transport.mu.Lock()
	defer c.transport.mu.Unlock()
	if c.transport.stopping.Load() {
		return net.ErrClosed
	}
	c.readBy = by
	if c.woken {
		by = past
	}
	return c.SetReadDeadline(by)
}

// past is a read deadline that ends a read at once.
var past = time.Unix(1, 0)

// readBlocked reads while the session waits in a command, to notice that the client leaves; what it
// sends is kept. The read ends when the wait does. Where nothing is read it looks at the connection each second.
func (c *conn) readBlocked() (int, error) {
	if c.session.IsFull() || c.session.WaitsForRoom() {
		if c.hasLeft() {
			return 0, io.EOF
		}
		c.session.WaitOnce(c.transport.context, coarseSecond)
		return 0, nil
	}
	if err := c.setReadDeadline(c.session.Waits().Deadline); err != nil {
		return 0, err
	}
	return c.Conn.Read(c.buf)
}

// hasLeft reports whether the client has left while its session waits in a command. One that waits for memory for its
// reply may have ended only what it sends.
func (c *conn) hasLeft() bool {
	client := c.session.Client()
	if !client.CanProbe() {
		return false
	}
	state := client.Probe()
	return state == socket.Broken || state == socket.Half && !c.session.WaitsForRoom()
}

// wake makes a read end, for the session may go on. It may be called from any goroutine, and too
// late.
func (c *conn) wake() {
	c.transport.mu.Lock()
	defer c.transport.mu.Unlock()
	c.woken = true
	_ = c.SetReadDeadline(past) // it fails on a closed connection only, whose read ends as well
}

// interrupted says whether a read has failed because the session may go on, or because the time of
// its wait is over.
func (c *conn) interrupted(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.transport.mu.Lock()
	defer c.transport.mu.Unlock()
	woken := c.woken
	c.woken, c.readBy = false, past // the next read sets its deadline anew
	return woken || c.session.Blocked()
}

// flush sends the output, piece by piece, until the session has no more; it reports whether the
// client took it all.
func (c *conn) flush() bool {
	v := c.transport.server
	for {
		out := c.session.Output()
		if len(out) == 0 {
			return !c.session.HasGone()
		}
		if c.session.HasGone() {
			c.session.Flushed(len(out))
			continue
		}
		out = out[:min(len(out), writeSize)]
		if now := time.Now(); c.writeBy.Sub(now) < v.Options.WriteTimeout {
			c.writeBy = now.Add(v.Options.WriteTimeout + coarseSecond)
			if err := c.SetWriteDeadline(c.writeBy); err != nil {
				return false
			}
		}
		n, err := c.Write(out)
		v.Counters.Out.Add(int64(n))
		v.Counters.Writes.Add(1)
		if err != nil && !c.session.Outlives(err) {
			return false
		}
		c.session.Flushed(n)
		c.session.NoteSent()
		if c.session.Unsent() > writeSize {
			c.accountMemory() // another reply may have come
		}
	}
}

// resizeBuffer fits the read buffer to what the client sends: large values in few reads, and little
// memory for an idle client. One that sends nothing more is woken, so that it is small again.
func (c *conn) resizeBuffer(n int) {
	switch {
	case n == len(c.buf) && n < maxReadSize:
		c.buf = make([]byte, 2*n)
	case n < len(c.buf)/4 && len(c.buf) > ReadSize:
		c.buf = make([]byte, ReadSize)
	}
	switch {
	case len(c.buf) == ReadSize:
	case c.shrink == nil:
		c.shrink = time.AfterFunc(keepReadBuffer, c.wake)
	default:
		c.shrink.Reset(keepReadBuffer)
	}
}

// accountMemory keeps the sum of what all clients hold in memory, and closes the largest while that
// is too much.
func (c *conn) accountMemory() {
	if v := c.transport.server; c.session.Account(c.session.Held() + len(c.buf)) {
		v.EvictLargestClients()
	}
}

// end closes the connection and forgets it. It leaves the map last: until then shutdown may set its deadline or abort it,
// which does nothing to one that is closed.
func (c *conn) end() {
	if c.shrink != nil {
		c.shrink.Stop()
	}
	_ = c.Close() // nothing is left to be sent
	c.session.Close()
	c.transport.forget(c.session)
	c.transport.mu.Lock()
	defer c.transport.mu.Unlock()
	delete(c.transport.conns, c)
}
