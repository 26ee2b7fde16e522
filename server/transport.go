package server

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

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/socket"
)

// The transport's constants.
const (
	readSize         = 16 << 10          // bytes of one read while reads are small
	maxReadSize      = 256 << 10         // bytes of one read once a client sends much
	keepReadBuffer   = 2 * time.Second   // that it keeps such a buffer when it sends nothing more
	writeSize        = 256 << 10         // bytes of one write; each has its own time-out
	defaultKeepAlive = 300 * time.Second // between TCP keep-alive probes, as in Redis
	uploadRate       = 64 << 10          // bytes a second that a large command is given beyond PartialTimeout
	coarseSecond     = time.Second       // deadlines are renewed this often, not at each read and write
)

// Serve answers the clients that connect to ln until ctx ends or ln is closed. An error of Accept is logged, and
// accepting goes on: the listener has to fail with net.ErrClosed when it is closed. Serve closes ln, lets
// commands on their way finish and their replies leave (within Options.ShutdownGrace), closes the
// connections and waits for all its goroutines, but not for a command that goes on two seconds after it was told to end.
// It returns nil when ctx ended it. The store stays open.
func Serve(ctx context.Context, ln net.Listener, store *db.Store, o *Options) error {
	v, err := New(store, o)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	return v.Serve(ctx, ln)
}

// Serve is what the function Serve calls. A server may serve several listeners; when the
// last has ended, it reports to nobody what happens to keys any more.
func (v *Server) Serve(ctx context.Context, ln net.Listener) error { return v.serve(ctx, ln, nil) }

// serve is Serve. A listener that is closed after retired leaves its connections alone; it returns when the last of
// them has ended.
func (v *Server) serve(ctx context.Context, ln net.Listener, retired <-chan struct{}) error {
	if err := v.checkListener(ln); err != nil {
		return errors.Join(err, ln.Close())
	}
	v.mu.Lock()
	v.address = ln.Addr()
	v.mu.Unlock()
	v.addServing(1)
	defer v.addServing(-1)
	ctx, shutDown := context.WithCancel(ctx)
	defer v.endedBy(shutDown)()
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &transport{server: v, context: work, log: v.options.Logger, public: !isLocal(ln.Addr()), conns: make(map[*conn]struct{})}
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() }) // ends Accept; its error is not news
	defer stop()
	err := t.accept(ctx, ln)
	_ = ln.Close() // closed already, unless accepting failed
	select {
	case <-retired:
		err = nil
		t.linger(ctx)
	default:
	}
	t.shutdown()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// transport is the connections of one listener. It outlives none of them, but for what shutdown does not wait for.
type transport struct {
	server      *Server
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
	transport *transport
	session   *Session
	buf       []byte
	shrink    *time.Timer // wakes the connection when buf has been large for long; nil: it never was
	readBy    time.Time   // the read deadline that is set; zero for none
	writeBy   time.Time   // the write deadline that is set
	woken     bool        // the session has to Resume; guarded by transport.mu
}

// accept takes connections until the listener is closed: no error of the system ends it, see socket.Steady.
func (t *transport) accept(ctx context.Context, ln net.Listener) error {
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
func (t *transport) adopt(nc net.Conn, s *Session) bool {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return false
	}
	if t.server.options.Transport != TransportEventLoop {
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
func (t *transport) start(nc net.Conn) {
	v := t.server
	if t.public && !v.users.Default().Rules().NeedsPassword() && !isLocal(nc.RemoteAddr()) {
		v.counters.Rejected.Add(1)
		t.turnAway(nc, "DENIED connections from other machines are accepted only while the default user needs a password: CONFIG SET requirepass, or ACL SETUSER default")
		return
	}
	needsSlot := v.users.Default().Rules().NeedsPassword() || socket.IsTLS(nc)
	if reason := t.admit(needsSlot); reason != "" {
		v.counters.Rejected.Add(1)
		t.turnAway(nc, "ERR "+reason)
		return
	}
	v.counters.Connections.Add(1)
	if tcp, ok := socket.Raw(nc).(*net.TCPConn); ok {
		// Failing to set it costs the detection of dead peers, no more.
		_ = tcp.SetKeepAliveConfig(v.keepAlive())
	}
	s := v.NewSession()
	s.host.Context = t.context
	s.presence.probe = socket.ProbeOf(nc)
	s.out.SetBudget(&v.replies.Budget)
	s.client.remote, s.client.local = nc.RemoteAddr().String(), nc.LocalAddr().String()
	s.who.hasSlot, s.isTLS, s.isRemote = needsSlot, socket.IsTLS(nc), !isLocal(nc.RemoteAddr())
	s.who.startUnknown(socket.IsTLS(nc))
	if !t.adopt(nc, s) {
		t.serveByGoroutine(nc, s)
	}
}

// keepAlive is how the system probes whether the other end of an idle connection is still there.
func (v *Server) keepAlive() net.KeepAliveConfig {
	period := time.Duration(v.tunables.keepAlive.Load()) * time.Second
	return net.KeepAliveConfig{Enable: period > 0, Idle: period, Interval: max(period/3, time.Second), Count: 3}
}

// turnAway ends a connection with an error: a courtesy that must not hold up others, one short write, then the end,
// whatever becomes of it. A client of TLS gets none, for that would take a handshake.
func (t *transport) turnAway(nc net.Conn, text string) {
	if !socket.IsTLS(nc) {
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = nc.Write([]byte("-" + text + "\r\n"))
	}
	_ = socket.Raw(nc).Close()
}

// serveByGoroutine starts a goroutine for a connection.
func (t *transport) serveByGoroutine(nc net.Conn, s *Session) {
	c := &conn{Conn: nc, transport: t, session: s}
	raw := socket.Raw(nc)
	s.client.fd, s.client.wake = socket.Number(nc), c.wake
	s.client.abort = func() {
		s.client.killed.Store(true)
		_ = raw.Close()
	}
	s.client.kill = func() {
		s.client.abort()
		s.client.endWaitOf(timedOut)
	}
	t.mu.Lock()
	t.conns[c] = struct{}{}
	t.mu.Unlock()
	t.server.register(s)
	t.connections.Go(c.serve)
}

// admit makes room for a connection, or says why there is none. Stopping and the count are looked at under one lock: no
// connection is admitted after shutdown has begun to wait for the last one.
func (t *transport) admit(needsSlot bool) (reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping.Load() {
		return "the server is shutting down"
	}
	if reason = t.server.takePlace(needsSlot); reason == "" {
		t.open++
	}
	return reason
}

// forget is the end of what admit and register began, for a connection that is closed.
func (t *transport) forget(s *Session) {
	s.who.releaseSlot()
	s.client.figures.leave(t.server)
	s.out.Close()
	t.server.counters.ClientBytes.Add(-s.client.bufferBytes.Swap(0))
	t.server.open.Add(-1)
	t.server.unregister(s)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open--; t.open == 0 && t.left != nil {
		close(t.left)
	}
}

// linger waits, when no connection comes any more, until the last one has ended, or ctx. Connections of a listener that a
// change of addresses has retired go on for as long as their clients like.
func (t *transport) linger(ctx context.Context) {
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
	c.buf = make([]byte, readSize)
	for {
		n, err := c.read()
		interrupted := err != nil && c.interrupted(err)
		if n > 0 {
			c.transport.server.counters.In.Add(int64(n))
			c.transport.server.counters.Reads.Add(1)
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
		by = c.session.partialDeadline(c.session.owes(time.Now()))
	} else {
		// As in Redis a subscriber may listen for ever.
		if idle := time.Duration(c.transport.server.tunables.idleTimeout.Load()); idle > 0 && !c.session.subscriber.Listens() {
			by = time.Now().Add(idle)
		}
	}
	authenticateBy := c.session.who.authenticateBy()
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
	if c.session.parser.Ahead() >= c.transport.server.pauseAt || c.session.room != nil {
		if c.hasLeft() {
			return 0, io.EOF
		}
		c.session.waitOnce(c.transport.context, coarseSecond)
		return 0, nil
	}
	if err := c.setReadDeadline(c.session.blocked.deadline); err != nil {
		return 0, err
	}
	return c.Conn.Read(c.buf)
}

// hasLeft reports whether the client has left while its session waits in a command. One that waits for memory for its
// reply may have ended only what it sends.
func (c *conn) hasLeft() bool {
	if c.session.presence.probe == nil {
		return false
	}
	state := c.session.presence.probe()
	return state == socket.Broken || state == socket.Half && c.session.room == nil
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
			return !c.session.presence.gone
		}
		if c.session.presence.gone {
			c.session.Flushed(len(out))
			continue
		}
		out = out[:min(len(out), writeSize)]
		if now := time.Now(); c.writeBy.Sub(now) < v.options.WriteTimeout {
			c.writeBy = now.Add(v.options.WriteTimeout + coarseSecond)
			if err := c.SetWriteDeadline(c.writeBy); err != nil {
				return false
			}
		}
		n, err := c.Write(out)
		v.counters.Out.Add(int64(n))
		v.counters.Writes.Add(1)
		if err != nil && !c.session.presence.outlives(err, c.session.closed) {
			return false
		}
		c.session.Flushed(n)
		c.session.noteFigures()
		c.session.limitOutput()
		if c.session.out.Len() > writeSize {
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
	case n < len(c.buf)/4 && len(c.buf) > readSize:
		c.buf = make([]byte, readSize)
	}
	switch {
	case len(c.buf) == readSize:
	case c.shrink == nil:
		c.shrink = time.AfterFunc(keepReadBuffer, c.wake)
	default:
		c.shrink.Reset(keepReadBuffer)
	}
}

// accountMemory keeps the sum of what all clients hold in memory, and closes the largest while that
// is too much.
func (c *conn) accountMemory() {
	if v := c.transport.server; v.accountMemory(c.session, c.session.Held()+len(c.buf)) {
		v.evictLargestClients()
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
