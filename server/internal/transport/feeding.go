package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/replication"
)

// feeding is the connection of a replica. One goroutine reads what it acknowledges, another one writes: the file, and the
// stream. Nobody waits for either; what waits for the replica has a limit, beyond which the connection is closed.
type feeding struct {
	*conn
	replicas *replication.Feeders
	feeder   *replication.Feeder
	context  context.Context // ends when the connection is to
	end      context.CancelFunc
	drains   bool // of the goroutine that reads
}

// checkEvery is how often a replica is looked at that sends nothing.
const checkEvery = time.Second

// drainEvery is how often it is looked at when the server ends.
const drainEvery = 10 * time.Millisecond

// feed serves a connection that has become a replica's, until either side ends it.
func (c *conn) feed(ask *replication.Ask) {
	v := c.transport.server
	client := c.session.Client()
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.transport.context))
	defer cancel()
	ask.Remote = client.Remote
	f := &feeding{conn: c, replicas: v.Replicas, context: ctx, end: cancel}
	began, host := time.Now(), client.Remote
	if at, _, err := net.SplitHostPort(host); err == nil {
		host = at
	}
	host = net.JoinHostPort(host, strconv.Itoa(ask.Port))
	number, isLogged := c.transport.visits.begin(host)
	var err error
	if f.feeder, err = v.Replicas.Join(*ask, func() { go f.close() }, time.Now()); err != nil {
		if isLogged { // it asks again and again
			c.transport.log.Warn("a replica cannot be served", "address", client.Remote, "port", ask.Port, "visits", number, "error", err)
		}
		_ = f.send([]byte("-" + v.ErrorText(err) + "\r\n"))
		return
	}
	defer v.Replicas.Leave(f.feeder)
	client.IsReplica.Store(true)
	c.session.Account(0)
	if isLogged {
		c.transport.log.Info("a replica asks for the stream", "address", client.Remote, "port", ask.Port, "from", ask.ReplID, "next", ask.Next, "visits", number)
	}
	var reading sync.WaitGroup
	reading.Go(f.read)
	if err = f.write(); err != nil && ctx.Err() != nil {
		err = f.feeder.Check(time.Now()) // why it was closed; nil: it has left
	}
	f.close()
	reading.Wait()
	lasted := time.Since(began)
	c.transport.visits.end(host, lasted)
	if isLogged || lasted >= steady {
		c.transport.log.Info("a replica has ended", "address", client.Remote, "port", ask.Port, "error", err)
	}
}

// close ends the connection, and with it both goroutines. It may be called by anybody.
func (f *feeding) close() {
	f.end()
	f.session.Client().Abort()
}

// read takes what the replica acknowledges, and looks after it once a second.
func (f *feeding) read() {
	defer f.close()
	buf := make([]byte, 4<<10)
	for {
		every := checkEvery
		if f.transport.stopping.Load() {
			every = drainEvery
		}
		if err := f.SetReadDeadline(time.Now().Add(every)); err != nil {
			return
		}
		n, err := f.Conn.Read(buf)
		now := time.Now()
		if n > 0 {
			f.transport.server.Counters.In.Add(int64(n))
		}
		if f.replicas.In(f.feeder, buf[:n], now) != nil || f.feeder.Check(now) != nil {
			return
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || f.isDrained() || f.context.Err() != nil {
			return
		}
		if !f.transport.stopping.Load() { // else one that has all, and has left, would lack it
			f.replicas.Ping(now)
		}
	}
}

// isDrained reports whether the server ends and the replica has all: so it goes on where it was when there is another server.
// What it lacks when the grace period is over it gets then.
func (f *feeding) isDrained() bool {
	v := f.transport.server
	if !f.transport.stopping.Load() || v.Open.Load() > int64(f.replicas.Count()) { // others may write still
		return false
	}
	if !f.drains {
		f.drains = true
		f.replicas.Quiesce()
	}
	return f.feeder.HasAll()
}

// write sends what there is for the replica.
func (f *feeding) write() error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for f.context.Err() == nil {
		if f.feeder.WantsFile() {
			if err := f.sendFile(tick.C); err != nil {
				return err
			}
		}
		if sent, err := f.sendOut(); sent || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		select {
		case <-f.feeder.More():
		case <-tick.C:
		case <-f.context.Done():
		}
	}
	return f.context.Err()
}

// sendOut sends what the feeder has at present, and reports whether that was anything.
func (f *feeding) sendOut() (sent bool, err error) {
	out, err := f.feeder.Out(time.Now())
	if len(out) == 0 || err != nil {
		return false, err
	}
	return true, f.send(out)
}

// send sends bytes. A replica that takes none of a piece for repl-timeout is given up.
func (f *feeding) send(out []byte) error {
	for len(out) > 0 {
		if silence := time.Duration(f.replicas.Settings.Timeout.Load()) * time.Second; silence > 0 {
			if err := f.SetWriteDeadline(time.Now().Add(silence)); err != nil {
				return err
			}
		}
		n, err := f.Conn.Write(out[:min(len(out), writeSize)])
		f.transport.server.Counters.Out.Add(int64(n))
		f.replicas.Sent.Add(int64(n))
		if err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

// Write is send for who writes the file.
func (f *feeding) Write(b []byte) (int, error) {
	if err := f.send(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// snapshot is what a full synchronization sends.
type snapshot struct {
	*db.Store
	done func() error
	err  error
}

// sendFile sends the store, as it is at one moment, without a file of it. While the snapshot opens the replica is kept awake.
func (f *feeding) sendFile(tick <-chan time.Time) error {
	opened := make(chan snapshot, 1)
	go func() {
		s, done, err := f.replicas.Snapshot(f.context, f.feeder)
		opened <- snapshot{s, done, err}
	}()
	s, err := f.awaitSnapshot(opened, tick)
	if s.err != nil {
		return s.err
	}
	defer s.done()
	if err != nil {
		return err
	}
	f.feeder.BeginFile()
	if _, err := f.sendOut(); err != nil {
		return err
	}
	if err := f.replicas.Write(f.context, f.feeder, s.Store, f); err != nil {
		return err
	}
	f.feeder.EndFile(time.Now())
	return nil
}

// awaitSnapshot returns the snapshot, also after an error.
func (f *feeding) awaitSnapshot(opened <-chan snapshot, tick <-chan time.Time) (s snapshot, err error) {
	for {
		if err == nil {
			if _, err = f.sendOut(); err != nil {
				f.end()
			}
		}
		select {
		case s = <-opened:
			return s, err
		case <-f.feeder.More():
		case <-tick:
		}
	}
}

// serveFeeding gives a connection that another driver had to a goroutine, which feeds its replica.
func (t *Connections) serveFeeding(c *conn, ask *replication.Ask) {
	t.mu.Lock()
	t.conns[c] = struct{}{}
	t.mu.Unlock()
	t.connections.Go(func() {
		defer c.end()
		if !c.session.Client().Killed.Load() { // before it had this driver
			c.feed(ask)
		}
	})
}
