package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/session"
	"github.com/stavedb/stave/server/internal/shared"
)

// MasterLink moves the bytes of the link to a master, where the server is a replica. One goroutine does (Run): it connects,
// reads, has what arrived applied and passed on, and writes; a link that is lost is made anew after a wait, and goes on where the
// stream of the server is.
type MasterLink struct {
	server     *shared.State
	newSession func() *session.Session
	options    MasterOptions
	retries    retries // what of it is logged
	anew       bool    // the next link loads everything
}

// MasterOptions are what the settings say of the link; they are asked when it is made.
type MasterOptions struct {
	Password, User         func() string
	Address, ListeningPort func() string               // that the master shows of this server; "" for that of the connection
	TLS                    func() (*tls.Config, error) // nil, nil: without
}

// NewMasterLink returns a link of a server; Run begins it.
func NewMasterLink(server *shared.State, newSession func() *session.Session, o MasterOptions) *MasterLink {
	return &MasterLink{server: server, newSession: newSession, options: o}
}

// Waits between two attempts. Each is lengthened by up to a half at random, so that the replicas of a master that comes
// back do not all come at once.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second

	lastRetryInGroup = time.Second // its primary is known to be there, or another one soon
)

// ackEvery is how often a replica says what it has applied, and looks whether its master is silent.
const ackEvery = time.Second

// masterReadSize is how much of the stream is read at once, and so the most that one round applies.
const masterReadSize = 256 << 10

// Run follows whatever master the server has until ctx ends.
func (m *MasterLink) Run(ctx context.Context) {
	f := &m.server.Following
	for ctx.Err() == nil {
		master, changed := f.Master()
		if master.IsZero() {
			select {
			case <-ctx.Done():
			case <-changed:
			case <-m.server.Failover.Requested():
				m.handOver(ctx)
			}
			continue
		}
		own, stop := context.WithCancel(ctx)
		var watch sync.WaitGroup
		watch.Go(func() {
			select {
			case <-changed:
				stop()
			case <-own.Done():
			}
		})
		m.follow(own, master)
		stop()
		watch.Wait()
	}
}

// failoverEvery is how often a FAILOVER looks whether a replica has everything.
const failoverEvery = 2 * time.Millisecond

// handOver waits until a FAILOVER has found a successor, or has ended.
func (m *MasterLink) handOver(ctx context.Context) {
	tick := time.NewTicker(failoverEvery)
	defer tick.Stop()
	for !m.server.Failover.Step(time.Now()) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = m.server.Failover.Abort("the server ends")
			return
		}
	}
}

// follow follows one master until ctx ends, or a command of it fails.
func (m *MasterLink) follow(ctx context.Context, master shared.Master) {
	f, logger := &m.server.Following, m.server.Options.Logger
	wait := firstRetry
	m.retries = retries{}
	for ctx.Err() == nil {
		began := time.Now()
		err := m.once(ctx, master)
		if ctx.Err() != nil || errors.Is(err, errAnotherMaster) {
			return
		}
		if errors.Is(err, errAskAgain) {
			continue
		}
		var refused *replication.TakeOverError
		if errors.As(err, &refused) {
			if err := m.server.Failover.Abort(err.Error()); err == nil {
				return
			}
		}
		var diverged *shared.DivergedError
		stopped := errors.As(err, &diverged)
		wasUp := false
		f.Report(master, func(s *shared.LinkStatus) {
			wasUp = s.State == shared.LinkUp
			if wasUp || s.DownSince.IsZero() {
				s.DownSince = time.Now()
			}
			s.State, s.Err, s.Stopped, s.SyncBytes = shared.LinkDown, redact.Error(err, m.server.Options.Dir), stopped && m.server.Member == nil, 0
			s.Failures++
		})
		if stopped && m.server.Member != nil {
			logger.Error("a command of the primary failed here: the member differs from it, and loads everything", "primary", master, "error", diverged)
			m.anew = true
		} else if stopped {
			logger.Error("a command of the master failed here: the replica differs from its master and stops; REPLICAOF again goes on; INFO replication has the command", "master", master, "error", diverged)
			<-ctx.Done()
			return
		}
		if m.retries.failed(err, time.Now()) {
			logger.Warn("the link to the master is down; it is made again", "master", master, "failures", m.retries.failures, "error", forLog(err))
		}
		if wasUp || time.Since(began) > lastRetry {
			wait = firstRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait + rand.N(wait/2)):
		}
		if wait = min(2*wait, lastRetry); m.server.Member != nil {
			wait = min(wait, lastRetryInGroup)
		}
	}
}

// errAnotherMaster ends a link that is not wanted any more, errAskAgain one whose successor sends everything: the next one learns
// where the two have parted.
var (
	errAnotherMaster = errors.New("the server has another master")
	errAskAgain      = errors.New("the successor has taken over, and sends everything")
)

// link is one connection to a master.
type link struct {
	*MasterLink
	net.Conn
	*replication.Link
	ctx     context.Context // ends when the server gets another master
	master  shared.Master
	timeout time.Duration
	heard   time.Time // when bytes came last
	ticked  time.Time
}

// once makes a connection and serves it until it ends.
func (m *MasterLink) once(ctx context.Context, master shared.Master) error {
	f := &m.server.Following
	done, ok := f.Begin(master)
	if !ok {
		return errAnotherMaster
	}
	defer done()
	timeout := time.Duration(m.server.Tunables.ReplTimeout.Load()) * time.Second
	f.Report(master, func(s *shared.LinkStatus) { s.State = shared.LinkConnecting })
	conn, err := m.dial(ctx, master, timeout)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer stop()
	defer conn.Close()
	applier := session.NewApplier(m.newSession(), m.skips, m.skipped)
	defer applier.Close()
	l := &link{MasterLink: m, Conn: conn, ctx: ctx, master: master, timeout: timeout, heard: time.Now(), ticked: time.Now()}
	o := replication.Options{Password: m.options.Password(), User: m.options.User(), Address: m.options.Address(), ListeningPort: m.options.ListeningPort()}
	stream := m.server.Replicas.Stream
	o.Origin, o.Known = stream.Origin()
	o.Known = o.Known && !m.anew
	o.TakeOver = f.Status().HandsOver
	apply := func(commands []replication.Command, received []byte, after replication.Origin) error {
		return stream.Pass(received, after, func() (bool, error) {
			if len(commands) == 0 {
				return true, nil
			}
			return replication.Done(m.server.Store, after, applier.Apply(commands, after))
		})
	}
	store := m.server.Store
	replica := replication.Replica{
		Apply: apply, Load: l.load,
		Written:  func() uint64 { return serverside.DB.NextSequence(store) },
		IsOnDisk: func(written uint64) bool { return serverside.DB.IsOnDisk(store, written) },
	}
	if member := m.server.Member; member != nil {
		if o.Group, err = member.Greeting(master); err != nil {
			return err
		}
		replica.Pinged, replica.Applied = member.Pinged, member.Applied
	}
	l.Link = replication.NewLink(o, replica)
	return l.serve()
}

// dial connects.
func (m *MasterLink) dial(ctx context.Context, master shared.Master, timeout time.Duration) (net.Conn, error) {
	config, err := m.options.TLS()
	if err != nil {
		return nil, fmt.Errorf("tls-replication: %w", err)
	}
	dialer := &net.Dialer{Timeout: timeout}
	if config == nil {
		return dialer.DialContext(ctx, "tcp", master.String())
	}
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", master.String())
}

// skips reports whether a command that fails is to be skipped. A member of a group acknowledges what it has: it skips nothing.
func (m *MasterLink) skips() bool {
	return m.server.Member == nil && m.server.Tunables.IgnoreErrors.Load()
}

// skipped notes a command that was skipped.
func (m *MasterLink) skipped(e *shared.DivergedError) {
	m.server.Options.Logger.Error("a command of the master failed here and was skipped (replica-ignore-errors)", "error", e)
	master, _ := m.server.Following.Master()
	m.server.Following.Report(master, func(s *shared.LinkStatus) { s.Ignored++ })
}

// serve reads and writes until something fails.
func (l *link) serve() error {
	buf := make([]byte, masterReadSize)
	if err := l.flush(); err != nil {
		return err
	}
	for {
		n, err := l.receive(buf)
		if err != nil {
			return err
		}
		rest, err := l.Feed(buf[:n])
		if err == nil && l.TookOver() && l.server.Following.Status().HandsOver {
			err = l.server.Following.TookOver(l.master)
		}
		if err == nil && l.AskedEarly() {
			err = errAskAgain
		}
		if err == nil && l.Phase() == replication.Loading {
			err = l.synchronize(rest)
		}
		if err != nil {
			return err
		}
		l.report()
		l.tick()
		if err := l.flush(); err != nil {
			return err
		}
	}
}

// tick acknowledges each second how far the replica has applied the stream. It comes after the bytes that were read have been
// applied: otherwise those would be acknowledged a second late, and never in a stream with one PING a second.
func (l *link) tick() {
	if now := time.Now(); now.Sub(l.ticked) >= ackEvery {
		l.ticked = now
		l.Tick()
	}
}

// receive reads what has arrived. While everything is loaded it says each second that the replica lives.
func (l *link) receive(buf []byte) (n int, err error) {
	for {
		if err := l.SetReadDeadline(time.Now().Add(ackEvery)); err != nil {
			return 0, err
		}
		if err := l.ctx.Err(); err != nil { // after the deadline, which the end of the context has set to one in the past
			return 0, err
		}
		n, err = l.Read(buf)
		now := time.Now()
		if n > 0 {
			l.heard = now
		}
		if l.Phase() == replication.Loading && now.Sub(l.ticked) >= ackEvery {
			l.ticked = now
			if err := l.write([]byte("\n")); err != nil {
				return 0, err
			}
		}
		switch {
		case n > 0:
			return n, nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, lost(err)
		case now.Sub(l.heard) > l.timeout:
			return 0, fmt.Errorf("the master has sent nothing for %v (repl-timeout)", l.timeout)
		case l.Phase() != replication.Loading:
			return 0, nil
		}
	}
}

// lost is the error of a connection that has ended.
func lost(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the master closed the connection")
	}
	return err
}

// fileReader reads the file that a link loads.
type fileReader struct{ *link }

func (r fileReader) Read(p []byte) (int, error) { return r.receive(p) }

// synchronize loads everything.
func (l *link) synchronize(rest []byte) error {
	f := &l.server.Following
	at := l.Position()
	isLogged := l.retries.begins()
	if isLogged {
		l.server.Options.Logger.Info("full synchronization begins", "master", l.RemoteAddr(), "replid", string(at.ReplID[:]), "offset", at.Offset)
	}
	f.Report(l.master, func(s *shared.LinkStatus) { s.State, s.SyncBytes = shared.LinkSyncing, 0 })
	if err := l.keepOrphans(isLogged); err != nil {
		return fmt.Errorf("full synchronization: %w", err)
	}
	start := time.Now()
	err := l.Load(rest, fileReader{l})
	if err != nil {
		return fmt.Errorf("full synchronization: %w", err)
	}
	if isLogged {
		l.server.Options.Logger.Info("full synchronization ended", "master", l.RemoteAddr(), "keys", l.server.Store.Stats().Keys, "took", time.Since(start))
	}
	l.anew = false
	f.Report(l.master, func(s *shared.LinkStatus) { s.FullSyncs++; s.Ignored = 0 })
	return nil
}

// keepOrphans keeps what the server alone has, before the master's data replace it.
func (l *link) keepOrphans(isLogged bool) error {
	v := l.server
	o, err := replication.KeepOrphans(v.Store, v.Replicas.Stream, l.History(), time.Now())
	logger := v.Options.Logger.With("master", l.master)
	switch {
	case err != nil:
		return err
	case o.IsNew:
		logger.Warn("this server has commits that its master has not, which replaces them: they are kept in a file (stave orphans)", "file", o.Name, "commands", o.Commands,
			"bytes", o.To-o.From, "bytes before, not known any more", o.Before, "parted", o.Parted)
	case isLogged && o.Name == "" && !o.Parted && v.Store.Stats().Keys > 0:
		logger.Info("the master replaces all data, and where its history and that of this server parted is not known: nothing is kept of what this server alone has")
	}
	return nil
}

// load is replication.Replica.Load. Nothing is installed of a master that the server is told not to follow meanwhile.
func (l *link) load(r io.Reader, at replication.Origin, ended func(io.Reader) error) (database int, err error) {
	f := &l.server.Following
	noted, from := time.Now(), int64(0)
	stillWanted := func(after io.Reader) error {
		if err := ended(after); err != nil || f.Follows(l.master) {
			return err
		}
		return errAnotherMaster
	}
	return replication.LoadFile(l.server.Store, l.server.Replicas.Stream, r, at, stillWanted, func(loaded int64) {
		if loaded-from < masterReadSize {
			return
		}
		from = loaded
		if now := time.Now(); now.Sub(noted) >= ackEvery/10 {
			noted = now
			f.Report(l.master, func(s *shared.LinkStatus) { s.SyncBytes, s.LastIO = loaded, l.heard })
		}
	})
}

// report shows how the link does.
func (l *link) report() {
	at, streaming, isNew := l.Position(), l.Phase() == replication.Streaming, false
	l.server.Following.Report(l.master, func(s *shared.LinkStatus) {
		s.LastIO = l.heard
		if !streaming {
			return
		}
		if s.State != shared.LinkUp {
			l.server.Replicas.Stream.ContinueAs(at.ReplID)
			s.State, s.DownSince, s.Err, s.SyncBytes = shared.LinkUp, time.Time{}, "", 0
			isNew = true
			if l.IsPartial() {
				s.PartialSyncs++
			}
		}
		s.Offset, s.ReplID = at.Offset, string(at.ReplID[:])
	})
	if isNew && l.retries.up(time.Now()) {
		l.server.Options.Logger.Info("the link to the master is up", "master", l.master, "failures", l.retries.failures, "goes on", l.IsPartial(), "offset", at.Offset)
	}
}

// flush writes the output.
func (l *link) flush() error {
	out := l.Output()
	if len(out) == 0 {
		return nil
	}
	err := l.write(out)
	l.Sent(len(out))
	return err
}

func (l *link) write(b []byte) error {
	if err := l.SetWriteDeadline(time.Now().Add(l.timeout)); err != nil {
		return err
	}
	_, err := l.Conn.Write(b)
	return err
}
