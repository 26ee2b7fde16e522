package transport

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/session"
	"github.com/stavedb/stave/server/internal/socket"
)

// EventLoopSupported says that this platform has the event loop.
const EventLoopSupported = true

// eventLoop is the transport that serves connections by one goroutine, on epoll; a listener has one or several.
// What is ready together is read, executed and answered together (round.go), in the order in which
// it arrived: the kernel reports ready descriptors in that order.
//
// Only the loop's goroutine touches connections and sessions, except for a session that is aside:
// then a goroutine of its own executes what may take long, or waits for the disk, and gives the
// session back. Whoever has something for the loop posts it: that is a list and, if the loop waits
// in the kernel, a write to an eventfd. No wake-up is lost, because sleeping is set and read with
// the list's lock held: who posts before the loop has said that it sleeps is found in the list, and
// who posts later writes to the eventfd, which ends the sleep whenever it comes.
type eventLoop struct {
	transport *Connections
	poller    *socket.Poller
	aside     sync.WaitGroup // sessions that are aside
	waking    sync.WaitGroup // posts that wake the poller; they begin while sleeping only

	conns  []*loopConn // by descriptor
	open   int         // connections
	round  uint64
	ready  []*loopConn // the round's connections
	again  []*loopConn // those that go on in the next round without a new event
	buf    []byte      // what one read brings; its length differs from round to round
	batch  *session.Batch
	now    time.Time // of the round
	evicts bool      // clients hold too much memory: see account
	sweep  time.Time // when to look at time-outs; zero while there is none to look at

	stopping bool // the server shuts down

	syncing   []*loopConn // sessions that the disk, or the group, is waited for
	unsynced  []*loopConn // those that came meanwhile
	waits     bool        // a goroutine waits for one of syncing
	syncError error       // of the goroutine, for the loop to read when it is posted

	served atomic.Int64 // connections, with those that have not been registered yet

	mu       sync.Mutex // guards the rest, and the marks of each connection
	posted   []*loopConn
	taken    []*loopConn // scratch of takePosted
	synced   bool        // the wait for the disk is over
	stop     bool        // no new commands
	force    bool        // no connection is waited for
	news     bool        // something has been posted
	sleeping bool        // a post must write to the eventfd
}

// The loop's constants.
const (
	loopEvents = 256       // taken from the kernel at a time
	loopRead   = 256 << 10 // bytes of the longest read
	sweepEvery = time.Second

	// Bounds of a round, and so of how long a client waits for the others.
	roundRead  = 2 << 20   // bytes that are read, of all connections, but at least leastRead of each
	leastRead  = 16 << 10  // as Redis reads
	roundWrite = 256 << 10 // bytes that are written to one connection, about
	roundPosts = 256       // connections whose marks are taken: those who wait for one key may all be woken at once
)

// newEventLoop makes a loop. run is its life.
func newEventLoop(t *Connections) (*eventLoop, error) {
	poller, err := socket.NewPoller(loopEvents)
	if err != nil {
		return nil, fmt.Errorf("server: making an event loop: %w", err)
	}
	return &eventLoop{transport: t, poller: poller, batch: session.NewBatch(), buf: make([]byte, loopRead)}, nil
}

// adopt gives a connection and its session to the loop. It reports false, and leaves the connection
// alone, if that has no descriptor to wait for, such as one of TLS.
func (l *eventLoop) adopt(nc net.Conn, s session.Link) bool {
	fd := socket.Descriptor(nc)
	if fd < 0 {
		return false
	}
	_ = nc.Close() // fd is another descriptor of the same connection, which the runtime does not poll
	l.served.Add(1)
	c := &loopConn{loop: l, fd: fd, session: s}
	s.Attach(fd, &clients.Driver{
		Wake:  func() { l.post(c, markWoken) },
		Kill:  func() { l.post(c, markKilled) },
		Probe: func() socket.State { return socket.Probe(c.fd) }, // a session that is aside keeps it open
	})
	s.JoinLoop(l.batch)
	l.transport.server.Clients.Add(s.Client())
	l.post(c, markNew)
	return true
}

// post marks a connection and makes the loop look at it. Any goroutine may call it, whatever it
// holds, and too late.
func (l *eventLoop) post(c *loopConn, m mark) {
	l.mu.Lock()
	if c.marks == 0 {
		l.posted = append(l.posted, c)
	}
	c.marks |= m
	l.wakeAndUnlock()
}

// wakeAndUnlock ends the loop's sleep, so that it finds what has been posted.
func (l *eventLoop) wakeAndUnlock() {
	if l.beginWakeAndUnlock() {
		l.endWake()
	}
}

// beginWakeAndUnlock notes that something has been posted. It reports whether the loop sleeps: then
// the caller must call endWake, and the descriptor stays open until it has.
func (l *eventLoop) beginWakeAndUnlock() (sleeping bool) {
	sleeping = l.sleeping
	l.news, l.sleeping = true, false
	if sleeping {
		l.waking.Add(1)
	}
	l.mu.Unlock()
	return sleeping
}

// endWake ends the sleep.
func (l *eventLoop) endWake() {
	l.poller.Wake()
	l.waking.Done()
}

// run serves until shutdown has been called and all connections have ended. Posts are taken after the kernel's events and
// before the round is served, so that one round does both; time-outs come last, when what has arrived has been counted
// as a sign of life.
func (l *eventLoop) run() {
	for !l.stopping || l.open > 0 {
		events := l.wait()
		l.round++
		l.now, l.evicts = time.Now(), false
		l.addReady(events)
		l.takePosted()
		l.serveRound()
		l.sweepTimeouts()
	}
	l.aside.Wait()
	l.waking.Wait() // nobody begins any more: the loop does not sleep
	l.poller.Close()
}

// wait returns what is ready. It sleeps until there is something, unless there is something else to do. The time-out is
// rounded up to the next millisecond: rounded down, the loop would not sleep during the last one.
func (l *eventLoop) wait() []unix.EpollEvent {
	l.mu.Lock()
	l.sleeping = !l.news && len(l.again) == 0
	timeout := 0
	if l.sleeping {
		timeout = -1
	}
	l.mu.Unlock()
	if timeout < 0 && !l.sweep.IsZero() {
		timeout = int(max(time.Until(l.sweep), 0)/time.Millisecond) + 1
	}
	return l.poller.Wait(timeout)
}

// addReady puts the connections that have events into the round, after those that go on.
func (l *eventLoop) addReady(events []unix.EpollEvent) {
	for _, c := range l.again {
		l.join(c)
	}
	clear(l.again)
	l.again = l.again[:0]
	for i := range events {
		e := &events[i]
		if l.poller.IsWakeUp(e.Fd) {
			l.poller.Drain() // what was posted is taken after this
			continue
		}
		if c := l.conns[e.Fd]; c != nil {
			c.noteEvents(e.Events)
		}
	}
}

// join makes a connection take part in the round, once.
func (l *eventLoop) join(c *loopConn) {
	if !c.ended && !c.aside && c.round != l.round {
		c.round = l.round
		l.ready = append(l.ready, c)
	}
}

// serveRound reads, executes and answers, in the order in which the connections became ready. They share roundRead bytes:
// the more of them, the shorter each read. l.buf can be used again for the next one, because the parser copies what it is
// fed. A connection is read once in a round at most, for its requests in the batch point into its parser's buffer.
func (l *eventLoop) serveRound() {
	if len(l.ready) == 0 {
		return
	}
	l.buf = l.buf[:min(max(roundRead/len(l.ready), leastRead), loopRead)]
	rounds := &l.transport.server.Replicas.Stream.Rounds
	rounds.Begin()
	for _, c := range l.ready {
		if c.read() {
			c.session.BeginRound(l.now)
		}
	}
	l.batch.Run()
	rounds.End()
	for _, c := range l.ready {
		if !c.ended {
			c.session.EndRound()
			c.finishRound()
		}
	}
	clear(l.ready)
	l.ready = l.ready[:0]
	if l.evicts { // those that were accounted for later may have more
		l.transport.server.EvictLargestClients()
	}
	l.waitDurable()
}

// takePosted does what other goroutines have posted, in the order in which they came, for a bounded number of
// connections: the others have their turn in the next rounds. Connections that have something to do take part in the
// round.
func (l *eventLoop) takePosted() {
	l.mu.Lock()
	l.sleeping = false
	if !l.news {
		l.mu.Unlock()
		return
	}
	l.taken = append(l.taken[:0], l.posted[:min(len(l.posted), roundPosts)]...)
	l.posted = slices.Delete(l.posted, 0, len(l.taken))
	l.news = len(l.posted) > 0
	synced, force := l.synced, l.force
	l.synced, l.stopping = false, l.stop
	for _, c := range l.taken {
		c.taken |= c.marks
		c.marks = 0
	}
	l.mu.Unlock()
	for _, c := range l.taken {
		c.takeMarks()
	}
	clear(l.taken)
	if synced {
		l.endDurable()
	}
	if l.stopping {
		l.endIdle(force)
	}
}

// endIdle ends the connections that have nothing on its way, when the server shuts down.
func (l *eventLoop) endIdle(force bool) {
	for _, c := range l.conns {
		switch {
		case c == nil:
		case !c.aside && (force || !c.unsent() && !c.isFull):
			c.end()
		case force:
			c.session.Client().Killed.Store(true)
			_ = unix.Shutdown(c.fd, unix.SHUT_RDWR) // it ends when it comes back
		}
	}
}

// waitDurable waits for the disk, or the group, for the sessions of a round whose replies must not leave before. One goroutine
// does for all, while the loop serves others; who comes meanwhile waits for the next. A sync is for all that was written
// before it, so that is one for the newest commit. A group confirms commit after commit: the oldest one is waited for, and
// all leave that are confirmed by then, so that nobody waits for more than its own.
func (l *eventLoop) waitDurable() {
	if l.waits || len(l.syncing)+len(l.unsynced) == 0 {
		return
	}
	l.syncing = append(l.syncing, l.unsynced...)
	clear(l.unsynced)
	l.unsynced = l.unsynced[:0]
	v := l.transport.server
	of, round := l.syncing[0].session.Undurable()
	newest := round
	for _, c := range l.syncing {
		t, r := c.session.Undurable()
		newest = max(newest, r)
		if v.Gate == nil {
			of = max(of, t)
		} else {
			of, round = min(of, t), min(round, r)
		}
	}
	l.waits = true
	l.aside.Go(func() {
		v.AskRound(newest)
		l.syncError = v.WaitDurable(of, round)
		l.mu.Lock()
		l.synced = true
		l.wakeAndUnlock()
	})
}

// endDurable answers those that have waited long enough. The goroutine has set syncError before it took l.mu to report, so
// it can be read here. The others are then waited for, with those that have committed meanwhile.
func (l *eventLoop) endDurable() {
	l.waits = false
	pending := l.syncing[:0]
	for _, c := range l.syncing {
		if l.syncError == nil && c.session.IsPending() {
			pending = append(pending, c)
			continue
		}
		c.session.EndDurable(c.session.Outcome(l.syncError))
		c.comeBack()
	}
	clear(l.syncing[len(pending):])
	l.syncing = pending
	l.waitDurable()
}

// goOn makes a connection take part in the next round.
func (l *eventLoop) goOn(c *loopConn) {
	if !c.ended && !c.isAgain {
		c.isAgain = true
		l.again = append(l.again, c)
	}
}

// sweepTimeouts looks at the time-outs of all connections, once a second while there are any.
func (l *eventLoop) sweepTimeouts() {
	idle := time.Duration(l.transport.server.Tunables.IdleTimeout.Load())
	if l.sweep.IsZero() {
		if idle > 0 && l.open > 0 {
			l.sweep = l.now.Add(sweepEvery)
		}
		return
	}
	if l.now.Before(l.sweep) {
		return
	}
	l.sweep = time.Time{}
	for _, c := range l.conns {
		if c == nil {
			continue
		}
		if c.aside { // its time is looked at when it is back
			l.sweep = l.now.Add(sweepEvery)
			continue
		}
		by := c.timeout(idle)
		if !by.IsZero() && !l.now.Before(by) {
			c.end()
		} else if !by.IsZero() {
			l.sweep = l.now.Add(sweepEvery)
		}
	}
}

// shutdown makes the loop end its connections, and itself: see Connections.Shutdown.
func (l *eventLoop) shutdown(force bool) {
	l.mu.Lock()
	l.stop, l.force = true, l.force || force
	l.wakeAndUnlock()
}
