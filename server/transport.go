package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
)

// ErrNotLoopback is returned by Serve for a listener that other machines can reach: there are no
// passwords yet, so anybody who can connect owns the data.
var ErrNotLoopback = errors.New("server: refusing to listen on an address that other machines can reach: the server has no authentication; bind 127.0.0.1, ::1 or a unix socket")

// The transport's constants.
const (
	readSize     = 16 << 10          // bytes of one read while reads are small
	maxReadSize  = 256 << 10         // bytes of one read once a client sends much
	writeSize    = 256 << 10         // bytes of one write; each has its own time-out
	keepAlive    = 300 * time.Second // between TCP keep-alive probes, as in Redis
	uploadRate   = 64 << 10          // bytes a second that a large command is given beyond PartialTimeout
	acceptPause  = 10 * time.Millisecond
	coarseSecond = time.Second // deadlines are renewed this often, not at each read and write
)

// Serve answers the clients that connect to ln until ctx ends or ln fails. It closes ln, lets
// commands on their way finish and their replies leave (within Options.ShutdownGrace), closes the
// connections and waits for all its goroutines. It returns nil when ctx ended it. The store stays
// open.
func Serve(ctx context.Context, ln net.Listener, store *db.Store, o *Options) error {
	v, err := New(store, o)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	return v.Serve(ctx, ln)
}

// Serve is what the function Serve calls. A server may serve several listeners; when the
// last has ended, it tells nobody of what happens to keys any more.
func (v *Server) Serve(ctx context.Context, ln net.Listener) error {
	if !isLocal(ln.Addr()) {
		return errors.Join(fmt.Errorf("%s: %w", ln.Addr(), ErrNotLoopback), ln.Close())
	}
	v.mu.Lock()
	v.address = ln.Addr()
	v.mu.Unlock()
	v.addServing(1)
	defer v.addServing(-1)
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &transport{server: v, context: work, log: v.options.Logger, conns: make(map[*conn]struct{})}
	if err := t.startLoop(); err != nil {
		return errors.Join(err, ln.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() }) // ends Accept; its error is not news
	defer stop()
	err := t.accept(ctx, ln)
	_ = ln.Close() // closed already, unless accepting failed
	t.shutdown()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// isLocal says whether only this machine can connect to the address.
func isLocal(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	// Listeners without a network, such as in-memory ones of tests.
	return a.Network() != "tcp" && a.Network() != "udp"
}

// transport is the connections of one listener. It outlives none of them: shutdown waits for all.
type transport struct {
	server      *Server
	context     context.Context // ends when the transport does: for commands that take long
	log         *slog.Logger
	connections sync.WaitGroup // one for each goroutine that serves a connection, or all of them
	loop        *eventLoop     // serves the connections that it can; nil without one

	mu       sync.Mutex         // guards conns and open, and the read deadlines against done
	conns    map[*conn]struct{} // those with a goroutine of their own
	open     int                // connections
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
	transport    *transport
	session      *Session
	buf          []byte
	partialSince time.Time // when the command began that has not ended; zero without one
	readBy       time.Time // the read deadline that is set; zero for none
	writeBy      time.Time // the write deadline that is set
	woken        bool      // the session has to Resume; guarded by transport.mu
}

// accept takes connections until the listener ends. An error that may pass, such as too many open
// files, is waited out.
func (t *transport) accept(ctx context.Context, ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() {
				// Out of file descriptors, most likely. Waiting lets connections end.
				t.log.Warn("accept failed; trying again", "error", err)
				time.Sleep(acceptPause)
				continue
			}
			return fmt.Errorf("accepting connections on %s: %w", ln.Addr(), err)
		}
		t.start(c)
	}
}

// startLoop makes the event loop, if the options choose it.
func (t *transport) startLoop() (err error) {
	if t.server.options.Transport != TransportEventLoop {
		return nil
	}
	if t.loop, err = newEventLoop(t); err == nil {
		t.connections.Go(t.loop.run)
	}
	return err
}

// start serves a connection, or turns it away.
func (t *transport) start(nc net.Conn) {
	v := t.server
	if reason := t.admit(); reason != "" {
		v.counters.rejected.Add(1)
		// A courtesy that must not hold up others: one short write, then the end, whatever becomes
		// of it.
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = nc.Write([]byte("-ERR " + reason + "\r\n"))
		_ = nc.Close()
		return
	}
	v.counters.connections.Add(1)
	if tcp, ok := nc.(*net.TCPConn); ok {
		// Failing to set it costs the detection of dead peers, no more.
		_ = tcp.SetKeepAlivePeriod(keepAlive)
	}
	s := v.NewSession()
	s.host.Context = t.context
	s.client.remote, s.client.local = nc.RemoteAddr().String(), nc.LocalAddr().String()
	if t.loop == nil || !t.loop.adopt(nc, s) {
		t.serveByGoroutine(nc, s)
	}
}

// serveByGoroutine starts a goroutine for a connection.
func (t *transport) serveByGoroutine(nc net.Conn, s *Session) {
	c := &conn{Conn: nc, transport: t, session: s}
	s.client.kill = func() {
		_ = nc.Close()
		s.client.endWaitOf(timedOut)
	}
	s.client.wake = c.wake
	s.client.abort = func() { _ = nc.Close() }
	t.mu.Lock()
	t.conns[c] = struct{}{}
	t.mu.Unlock()
	t.server.register(s)
	t.connections.Go(c.serve)
}

// admit makes room for a connection, or says why there is none.
func (t *transport) admit() (reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.stopping.Load():
		return "the server is shutting down"
	case int64(t.open) >= t.server.tunables.maxClients.Load():
		return "max number of clients reached"
	}
	t.open++
	return ""
}

// forget is the end of what admit and register began, for a connection that is closed.
func (t *transport) forget(s *Session) {
	t.server.counters.clientBytes.Add(-s.client.bufferBytes.Swap(0))
	t.server.unregister(s)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
}

// serve is the life of a connection: read, execute, write, until either side ends it.
func (c *conn) serve() {
	defer c.end()
	c.buf = make([]byte, readSize)
	for {
		n, err := c.read()
		interrupted := err != nil && c.interrupted(err)
		if n > 0 {
			c.transport.server.counters.in.Add(int64(n))
			c.transport.server.counters.reads.Add(1)
		}
		if n > 0 || interrupted || err == nil {
			c.session.Feed(c.buf[:n])
			c.session.Resume()
			c.accountMemory() // while the replies are there, and again when they are not
			if !c.flush() || c.session.Closed() {
				return
			}
			c.accountMemory()
			c.resizeBuffer(n)
		}
		if err != nil && !interrupted || c.transport.stopping.Load() {
			return
		}
	}
}

// read waits for bytes. A connection between commands may wait for ever (or Options.IdleTimeout);
// one that has begun a command owes the rest.
func (c *conn) read() (int, error) {
	o := &c.transport.server.options
	var by time.Time
	if c.session.Blocked() {
		return c.readBlocked()
	}
	if c.session.Partial() {
		now := time.Now()
		if c.partialSince.IsZero() {
			c.partialSince = now
		}
		by = c.partialSince.Add(o.PartialTimeout + time.Duration(c.session.parser.Buffered())*time.Second/uploadRate)
	} else {
		c.partialSince = time.Time{}
		// As in Redis a subscriber may listen for ever.
		if idle := time.Duration(c.transport.server.tunables.idleTimeout.Load()); idle > 0 && !c.session.hasSubscriptions() {
			by = time.Now().Add(idle)
		}
	}
	if by.IsZero() != c.readBy.IsZero() || by.Before(c.readBy) || by.Sub(c.readBy) > coarseSecond {
		if err := c.setReadDeadline(by); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(c.buf)
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
// sends is kept. The read ends when the wait does.
func (c *conn) readBlocked() (int, error) {
	c.partialSince = time.Time{}
	if c.session.parser.Buffered() >= c.transport.server.pauseAt {
		c.session.Wait(c.transport.context)
		return 0, nil
	}
	if err := c.setReadDeadline(c.session.blocked.deadline); err != nil {
		return 0, err
	}
	return c.Conn.Read(c.buf)
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
			return true
		}
		out = out[:min(len(out), writeSize)]
		if now := time.Now(); c.writeBy.Sub(now) < v.options.WriteTimeout {
			c.writeBy = now.Add(v.options.WriteTimeout + coarseSecond)
			if err := c.SetWriteDeadline(c.writeBy); err != nil {
				return false
			}
		}
		n, err := c.Write(out)
		v.counters.out.Add(int64(n))
		v.counters.writes.Add(1)
		c.session.Flushed(n)
		if err != nil {
			return false
		}
	}
}

// resizeBuffer fits the read buffer to what the client sends: large values in few reads, and little
// memory for an idle client.
func (c *conn) resizeBuffer(n int) {
	switch {
	case n == len(c.buf) && n < maxReadSize:
		c.buf = make([]byte, 2*n)
	case n < len(c.buf)/4 && len(c.buf) > readSize:
		c.buf = make([]byte, readSize)
	}
}

// accountMemory keeps the sum of what all clients hold in memory, and closes the largest while that
// is too much.
func (c *conn) accountMemory() {
	if v := c.transport.server; v.accountMemory(c.session, c.session.Held()+len(c.buf)) {
		v.evictLargestClient()
	}
}

// accountMemory notes what a client holds in memory, and reports whether that is too much for all
// clients together.
func (v *Server) accountMemory(s *Session, held int) (tooMuch bool) {
	total := v.counters.clientBytes.Add(int64(held) - s.client.bufferBytes.Swap(int64(held)))
	most := v.tunables.clientMemory.Load()
	return most > 0 && total > most
}

// evictLargestClient closes the client with the largest buffers. Its own goroutine gives them back.
func (v *Server) evictLargestClient() {
	var largest *Session
	for _, s := range v.sessions() {
		if largest == nil || s.client.bufferBytes.Load() > largest.client.bufferBytes.Load() {
			largest = s
		}
	}
	if largest != nil && largest.client.kill != nil {
		v.counters.evicted.Add(1)
		v.options.Logger.Warn("clients hold too much memory; closing the largest", "client", largest.id, "bytes", largest.client.bufferBytes.Load())
		largest.client.kill()
	}
}

// end closes the connection and forgets it.
func (c *conn) end() {
	_ = c.Close() // nothing is left to be sent
	c.session.Close()
	c.transport.forget(c.session)
	c.transport.mu.Lock()
	defer c.transport.mu.Unlock()
	delete(c.transport.conns, c)
}

// shutdown ends the connections: those that wait for a command at once, those in one when its reply
// has left, and what is left after the grace period by force. It returns when all are gone.
func (t *transport) shutdown() {
	t.mu.Lock()
	t.stopping.Store(true)
	for c := range t.conns {
		_ = c.SetReadDeadline(past) // wakes its read; a closed connection needs no waking
	}
	t.mu.Unlock()
	if t.loop != nil {
		t.loop.shutdown(false)
	}
	force := time.AfterFunc(t.server.options.ShutdownGrace, func() {
		if t.loop != nil {
			t.loop.shutdown(true)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		for c := range t.conns {
			_ = c.Close()
		}
	})
	defer force.Stop()
	t.connections.Wait()
}
