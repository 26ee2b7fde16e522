package transport

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/session"
)

// loopConn is one connection of an event loop. Only the loop touches it, but for marks. While aside is set the session
// either is with a goroutine, and the loop touches only what is atomic in its client, or waits for the disk (waitDurable).
// The descriptor stays open as long as the session may be aside, so its number cannot become that of another connection.
type loopConn struct {
	loop    *eventLoop
	fd      int
	session session.Link
	marks   mark // what has been posted; guarded by loop.mu
	taken   mark // what of it the loop has taken and not done yet

	listens  uint32 // the events that the kernel reports
	known    bool   // it is in loop.conns, or was
	readable bool   // there may be something to read: the kernel said so once, and will not again
	full     bool   // the socket takes no more now: the kernel says when it does
	hangup   bool   // the client sends no more: the last that can be read is the end
	broken   bool   // it reads no more either
	eof      bool   // it has been read
	ended    bool
	aside    bool   // the session is with another goroutine, or waits for the disk
	isAgain  bool   // it goes on in the next round
	isFull   bool   // it has been fed more than it has executed
	round    uint64 // the last one that it took part in

	active       time.Time     // when it took part in a round
	partialSince time.Time     // when the command began that the client owes the rest of; zero without one
	unsentSince  time.Time     // when the piece of output began that has not been sent; zero without one
	unsentTaken  int           // bytes that the client has taken since then
	waiting      *clients.Wait // the wait that timer is for
	timer        *time.Timer
}

// mark is what can be posted for a connection.
type mark uint8

const (
	markNew    mark = 1 << iota // it is to be served
	markWoken                   // the session has a message, or its wait has ended
	markKilled                  // it is to be closed
	markBack                    // its session was aside
)

// takeMarks does what has been posted. markNew comes first, for a connection may have been killed or woken before the
// loop has seen it. Of a session that is aside everything else stays in taken until it comes back: comeBack looks for a
// kill, and a wake-up is superfluous then.
func (c *loopConn) takeMarks() {
	if c.taken&markNew != 0 {
		c.taken &^= markNew
		c.register()
	}
	switch {
	case !c.known: // somebody else was quicker than who posts that it is new
	case c.taken&markBack != 0:
		c.comeBack()
	case c.ended:
	case c.aside: // it ends when it comes back; the client need not wait for that
		if c.taken&markKilled != 0 {
			_ = unix.Shutdown(c.fd, unix.SHUT_RDWR) // fails if the client has gone
		}
	case c.taken&markKilled != 0:
		c.end()
	case c.taken&markWoken != 0:
		c.taken = 0
		c.loop.join(c)
	}
}

// register makes the loop serve the connection. l.conns is indexed by descriptor; the system gives the lowest number that
// is free, so its length follows the largest number of files that were open at a time.
func (c *loopConn) register() {
	l := c.loop
	for c.fd >= len(l.conns) {
		l.conns = append(l.conns, make([]*loopConn, max(64, len(l.conns)))...)
	}
	l.conns[c.fd] = c
	l.open++
	c.known = true
	c.active = l.now
	if !c.session.AuthenticateBy().IsZero() {
		l.sweepSoon()
	}
	if !c.listen(listening) {
		c.end()
	}
}

// comeBack lets the session go on in the loop.
func (c *loopConn) comeBack() {
	c.aside = false
	if c.taken&markKilled != 0 {
		c.end()
		return
	}
	c.taken = 0
	c.loop.join(c)
}

// listening are the events of a connection that takes its replies. The kernel reports each once, in
// the order in which they come (EPOLLET); what is reported again and again would keep its place and
// so overtake others.
const listening = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

// listen chooses the events that the kernel reports. It reports false if that fails.
func (c *loopConn) listen(events uint32) bool {
	if events == c.listens {
		return true
	}
	if err := c.loop.poller.Listen(c.fd, events, c.listens != 0); err != nil {
		c.loop.transport.log.Error("epoll_ctl failed; connection closed", "client", c.session.ID(), "error", err)
		return false
	}
	c.listens = events
	return true
}

// noteEvents notes what the kernel has reported. It must not forget any of it, since nothing is reported twice: readable
// stays set until a read has emptied the socket, whatever keeps the loop from reading meanwhile.
func (c *loopConn) noteEvents(events uint32) {
	c.broken = c.broken || events&(unix.EPOLLHUP|unix.EPOLLERR) != 0
	c.hangup = c.hangup || c.broken || events&unix.EPOLLRDHUP != 0
	c.readable = c.readable || c.hangup || events&unix.EPOLLIN != 0
	c.loop.join(c)
}

// read feeds the session what has arrived. It reports false if the connection has ended. One read(2) for each round: a
// client that sends much has its next turn with the others. A read that fills less than the buffer has emptied the
// socket, unless the end follows, so the call that would say EAGAIN is saved.
func (c *loopConn) read() bool {
	if c.ended {
		return false
	}
	if !c.mayRead() {
		return true
	}
	l := c.loop
	n, err := unix.Read(c.fd, l.buf)
	switch {
	case n > 0:
		v := c.loop.transport.server
		v.Counters.In.Add(int64(n))
		v.Counters.Reads.Add(1)
		c.session.Take(l.buf[:n])
		c.readable = n == len(l.buf) || c.hangup
	case err == nil:
		c.eof, c.readable = true, false
	case err == unix.EAGAIN:
		c.readable = false
	case err != unix.EINTR:
		c.end()
		return false
	}
	return true
}

// mayRead says whether there is something to read, and whether to read it. Nothing is read of a
// client that does not take its replies, or waits in a command and has sent much meanwhile.
func (c *loopConn) mayRead() bool {
	s := c.session
	return c.readable && !c.eof && !s.Closed() && !c.isFull && !c.unsent() && (!s.Blocked() || !s.IsFull())
}

// hasLeft reports whether the client has left while its session waits in a command, even if what it has sent before is
// not read because there is too much of it. One that waits for memory for its reply may have ended only what it sends.
func (c *loopConn) hasLeft() bool {
	s := c.session
	return s.Blocked() && (c.broken || c.hangup && !s.WaitsForRoom())
}

// finishRound sends the replies, or lets the session go aside, and says what is to be waited for. The order matters:
// memory is accounted for while the replies are there; a session that leaves, or whose commits are not durable yet, sends
// nothing; and whether it goes on is judged by what is left after sending. A connection that is finished ends only when
// its output has been taken, and when no command of it waits for memory.
func (c *loopConn) finishRound() {
	l, s := c.loop, c.session
	c.isAgain, c.active = false, l.now
	held := c.account()
	switch {
	case s.Leaves():
		c.goAside()
		return
	case s.IsPending():
		c.aside = true
		l.unsynced = append(l.unsynced, c)
		return
	}
	s.EndDurable(s.Outcome(nil))
	paused := s.Paused()
	if !c.flush() {
		c.end()
		return
	}
	if held > 2*loopRead {
		c.account() // what is left of it
	}
	s.NoteSent()
	c.isFull = paused && !s.Closed()
	idle := !c.unsent() && !c.isFull
	if idle && (s.Closed() || c.hasLeft() || (c.eof || s.HasGone() || l.stopping) && !s.WaitsForRoom()) {
		c.end()
		return
	}
	if ask := s.Follows(); ask != nil && !c.unsent() {
		c.handOver(ask)
		return
	}
	if c.isFull && !s.Paused() || c.mayRead() || c.unsent() && !c.full {
		l.goOn(c)
	}
	c.watchWait()
	c.watchPartial(idle)
	events := uint32(listening)
	if c.full {
		events |= unix.EPOLLOUT
	}
	if !c.listen(events) {
		c.end()
	}
}

// goAside gives the session to a goroutine of its own, until that posts it back. The loop's goroutine has the session
// before, the other one from here on; the post hands it back, and loop.mu orders what both have written.
func (c *loopConn) goAside() {
	c.aside = true
	c.loop.transport.server.Counters.Aside.Add(1)
	c.loop.aside.Go(func() {
		c.session.ExecuteAside()
		c.loop.post(c, markBack)
	})
}

// unsent says whether the client has not taken all replies.
func (c *loopConn) unsent() bool { return c.session.Unsent() > 0 }

// flush sends the output as far as the client takes it, but not much more than roundWrite. It reports
// false if the client has gone.
func (c *loopConn) flush() bool {
	s, counters := c.session, &c.loop.transport.server.Counters
	c.full = false
	for sent := 0; c.unsent(); {
		if sent >= roundWrite {
			return true // the client takes it, so no time-out
		}
		out := s.Output()
		n, err := unix.Write(c.fd, out[:min(len(out), writeSize)])
		if n > 0 {
			sent += n
			counters.Out.Add(int64(n))
			counters.Writes.Add(1)
			s.Sent(n)
			if c.unsentTaken += n; c.unsentTaken >= writeSize {
				c.unsentSince, c.unsentTaken = time.Time{}, 0 // the next piece has its own time
			}
			continue
		}
		if err == unix.EINTR {
			continue
		}
		if err != unix.EAGAIN {
			s.Sent(len(out))
			return s.Outlives(err)
		}
		c.full = true
		if c.unsentSince.IsZero() {
			c.unsentSince, c.unsentTaken = c.loop.now, 0
		}
		c.loop.sweepSoon()
		return true
	}
	c.unsentSince, c.unsentTaken = time.Time{}, 0
	return true
}

// watchWait has the loop woken when the time of a command that waits is over. A timer of a wait that has ended may have
// fired already: its wake-up finds nothing to do.
func (c *loopConn) watchWait() {
	b := c.session.Waits()
	if b == c.waiting {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	c.waiting = b
	if b != nil && !b.Deadline.IsZero() {
		c.timer = time.AfterFunc(time.Until(b.Deadline), c.session.Client().Wake)
	}
}

// watchPartial notes since when the client owes the rest of a command. idle says that all it has
// sent has been looked at.
func (c *loopConn) watchPartial(idle bool) {
	c.partialSince = time.Time{}
	if !idle || c.session.Blocked() {
		return
	}
	if c.partialSince = c.session.Owes(c.loop.now); !c.partialSince.IsZero() {
		c.loop.sweepSoon()
	}
}

// timeout is when the connection is to be closed if nothing happens; zero for never. idle is how
// long it may say nothing, 0 for ever.
func (c *loopConn) timeout(idle time.Duration) time.Time {
	return earlier(c.idleTimeout(idle), c.session.AuthenticateBy())
}

// idleTimeout is timeout of a client that has authenticated.
func (c *loopConn) idleTimeout(idle time.Duration) time.Time {
	s := c.session
	o := &c.loop.transport.server.Options
	switch {
	case !c.unsentSince.IsZero():
		return c.unsentSince.Add(o.WriteTimeout)
	case !c.partialSince.IsZero():
		return s.PartialDeadline(c.partialSince)
	case idle > 0 && !s.Blocked() && !s.Listens(): // as in Redis a subscriber may listen for ever
		return c.active.Add(idle)
	}
	return time.Time{}
}

// sweepSoon makes the loop look at time-outs, within sweepEvery: a time-out may come so much later than it says. While no
// connection has one the loop sleeps without end.
func (l *eventLoop) sweepSoon() {
	if l.sweep.IsZero() {
		l.sweep = l.now.Add(sweepEvery)
	}
}

// account keeps the sum of what all clients hold in memory, and returns what this one does. If that is too much clients
// are evicted, at once and again at the end of the round, but not for each client of it.
func (c *loopConn) account() (held int) {
	held = c.session.Held()
	if c.session.Account(held) && !c.loop.evicts {
		c.loop.evicts = true
		c.loop.transport.server.EvictLargestClients()
	}
	return held
}

// end closes the connection and forgets it. It must not be called while the session is aside. It may be called twice,
// and between rounds: whoever has the connection in a list looks at ended.
func (c *loopConn) end() {
	if c.ended {
		return
	}
	c.release()
	if c.session.ClosesQuickly() {
		c.forget()
		return
	}
	c.loop.transport.server.Counters.Aside.Add(1)
	c.loop.aside.Go(c.forget)
}

// forget ends the session of a connection that has ended.
func (c *loopConn) forget() {
	c.session.Close()
	c.loop.transport.forget(c.session)
}
