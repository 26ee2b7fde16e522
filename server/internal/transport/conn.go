package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/stavedb/stave/server/internal/session"
	"github.com/stavedb/stave/server/internal/socket"
)

// Sizes and times of a connection that a goroutine serves.
const (
	ReadSize       = 16 << 10        // bytes of one read while reads are small
	maxReadSize    = 256 << 10       // bytes of one read once a client sends much
	keepReadBuffer = 2 * time.Second // that it keeps such a buffer when it sends nothing more
	writeSize      = 256 << 10       // bytes of one write; each has its own time-out
	coarseSecond   = time.Second     // deadlines are renewed this often, not at each read and write
)

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
			if ask := c.session.Follows(); ask != nil {
				c.feed(ask)
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
