package replication

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/redisfile"
	"github.com/stavedb/stave/server/internal/gate"
)

// Settings are those of a master, as they are now.
type Settings struct {
	BacklogTTL    atomic.Int64 // seconds that the stream goes on without replicas; 0: for ever
	Timeout       atomic.Int64 // seconds
	PingPeriod    atomic.Int64 // seconds
	MinReplicas   atomic.Int64 // that a write needs; 0: none
	MaxLag        atomic.Int64 // seconds that one of them may have said nothing; 0: any
	FieldDeadline atomic.Bool  // replicas know those, as of the next time that the stream begins

	OutputHard, OutputSoft, OutputSeconds atomic.Int64 // client-output-buffer-limit
}

// Feeders are the replicas of a server, and the stream for them. The stream begins with the first replica. All methods may
// be called by any goroutine.
type Feeders struct {
	Settings Settings
	Stream   *Stream
	store    *db.Store
	Gate     *gate.Gate // of a member of a group; nil without one. It is set before Start, or else BeginTerm ends the stream that goes on
	// GroupAcked is told what a member of a group says, and how long the stream is; nil without a group.
	GroupAcked func(m *Membership, ack string, offset int64)

	snapshots chan struct{} // has an element for each that is open

	FullSyncs, PartialSyncs, PartialRefused, Sent atomic.Int64 // as INFO has them; Sent is in bytes

	mu      sync.Mutex // guards the next five; held while transactions are waited for, so only who feeds a replica takes it
	stop    func()     // ends the capture; nil without one
	slotted bool       // the capture says of which keys commits are
	follows bool       // the server is a replica itself: the stream is its master's
	version int        // of files, which goes with the capture
	idle    *time.Timer

	sharing sync.Mutex      // guards shared, and what it says; taken with the log locked
	shared  *sharedSnapshot // that others can still share; nil for none

	waiting sync.Mutex // guards the rest
	waiters []*waiter
	pruneAt int // waiters at which those that are over are dropped
}

// NewFeeders returns those of a server on a store: none.
func NewFeeders(store *db.Store) *Feeders {
	m := &Feeders{store: store, Stream: NewStream(defaultBacklog), snapshots: make(chan struct{}, mostSnapshots)}
	s := &m.Settings
	s.BacklogTTL.Store(3600)
	s.Timeout.Store(60)
	s.PingPeriod.Store(10)
	s.MaxLag.Store(10)
	s.OutputHard.Store(256 << 20)
	s.OutputSoft.Store(64 << 20)
	s.OutputSeconds.Store(60)
	return m
}

// defaultBacklog is repl-backlog-size where nothing sets it.
const defaultBacklog = 16 << 20

// limits are those of a replica.
func (m *Feeders) limits() Limits {
	s := &m.Settings
	return Limits{
		Hard: s.OutputHard.Load(), Soft: s.OutputSoft.Load(), SoftFor: time.Duration(s.OutputSeconds.Load()) * time.Second,
		Silence: time.Duration(s.Timeout.Load()) * time.Second,
	}
}

// Join adds a replica. The first one lets the stream begin, for which transactions that run are waited for. over is called
// with the log locked, once, when more waits for the replica than the limit.
func (m *Feeders) Join(ask Ask, over func(), now time.Time) (*Feeder, error) {
	if err := m.begin(ask.Peer); err != nil {
		return nil, err
	}
	if !m.Stream.serves(&ask) {
		return nil, ErrNoMasterLink
	}
	f, isPartial := m.Stream.Attach(ask, m.limits, over, now)
	switch {
	case isPartial:
		m.PartialSyncs.Add(1)
	default:
		m.FullSyncs.Add(1)
		if ask.ReplID != "?" && !ask.SYNC {
			m.PartialRefused.Add(1)
		}
	}
	return f, nil
}

// begin begins the capture for a replica, unless there is one.
func (m *Feeders) begin(p Peer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.follows && m.stop == nil {
		m.setVersion()
	}
	if _, err := m.versionFor(p); err != nil {
		return err
	}
	if m.idle != nil {
		m.idle.Stop()
		m.idle = nil
	}
	if m.follows || m.stop != nil {
		return nil
	}
	return m.capture()
}

// capture begins it, with the stream.
func (m *Feeders) capture() error { return m.captureWith(m.Stream.Begin) }

// captureWith begins it. begin makes the stream one of commits.
func (m *Feeders) captureWith(begin func()) (err error) {
	timed := m.setVersion()
	begin()
	c := serverside.Capture{Written: m.Stream.Written, FieldDeadlines: timed}
	if m.slotted = m.Gate != nil; m.slotted {
		c.SlotOf = gate.SlotOf
	}
	m.stop, err = serverside.DB.Capture(m.store, c)
	if err != nil {
		m.Stream.End()
	}
	return err
}

// oldVersion is that of files for replicas before 7.4.
const oldVersion = redisfile.LibraryVersion

// Leave removes a replica. After the last one the stream goes on for a while: it may come back.
func (m *Feeders) Leave(f *Feeder) {
	left := m.Stream.Detach(f)
	m.acknowledged() // it does not count any more
	if left > 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endLater()
}

// endLater ends the stream of a master repl-backlog-ttl from now, unless a replica comes.
func (m *Feeders) endLater() {
	if ttl := m.Settings.BacklogTTL.Load(); m.Gate == nil && m.idle == nil && m.stop != nil && ttl > 0 {
		m.idle = time.AfterFunc(time.Duration(ttl)*time.Second, m.endIdle)
	}
}

// endIdle ends the stream, unless a replica has come meanwhile.
func (m *Feeders) endIdle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.idle == nil {
		return
	}
	if m.idle = nil; m.Stream.count() == 0 { // else one has joined while the last one left; after it there is another timer
		m.end()
	}
}

// end ends the stream. A gate that knows of no commits any more shows none.
func (m *Feeders) end() {
	m.idle = nil
	if m.stop != nil {
		if m.Gate != nil {
			m.Gate.End()
		}
		m.stop()
		m.stop = nil
		m.Stream.End()
	}
}

// Start continues the stream that Stop has kept, if nothing was written since.
func (m *Feeders) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != nil || m.follows {
		return nil
	}
	from := m.Stream.Position().Offset
	kept, err := serverside.DB.TakeReplication(m.store, m.capture)
	if err != nil || m.stop != nil && !m.Stream.resume(kept, from) {
		m.end()
	}
	m.endLater() // as after the last replica has left: perhaps none comes back
	return err
}

// Stop ends the stream, and keeps where it is for the next Start. All replicas have left. That of a replica goes on.
func (m *Feeders) Stop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.idle != nil {
		m.idle.Stop()
		m.idle = nil
	}
	if m.follows {
		serverside.DB.SetExpiryCycle(m.store, true)
		return m.keepOrigin()
	}
	if m.stop == nil {
		return nil
	}
	err := serverside.DB.KeepReplication(m.store, m.Stream.encode)
	m.end()
	serverside.DB.SetExpiryCycle(m.store, true)
	return err
}

// Quiesce lets nothing expire until Stop, and asks all replicas how far they are.
func (m *Feeders) Quiesce() {
	serverside.DB.SetExpiryCycle(m.store, false)
	m.Stream.AskForAcks()
}

// Write writes the file of a snapshot for a replica.
func (m *Feeders) Write(ctx context.Context, f *Feeder, snapshot *db.Store, w io.Writer) error {
	o := redisfile.ExportOptions{Aux: f.aux()}
	m.mu.Lock()
	version, err := m.versionFor(f.ask.Peer)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	o.Version = version
	_, err = redisfile.ExportRDB(ctx, snapshot, w, o)
	return err
}

// In gives a feeder what its replica has sent.
func (m *Feeders) In(f *Feeder, in []byte, now time.Time) error {
	acknowledged, err := f.In(in, now)
	if acknowledged {
		m.acknowledged()
	}
	if f.ask.Member != nil && m.GroupAcked != nil {
		if ack, offset := f.takeGroupAck(); ack != "" {
			m.GroupAcked(f.ask.Member, ack, offset)
		}
	}
	return err
}

// Ping lets the stream have a PING when it is time for one.
func (m *Feeders) Ping(now time.Time) {
	m.Stream.Ping(now, time.Duration(m.Settings.PingPeriod.Load())*time.Second)
}

// PingGroup adds a ping of the primary of a group to the stream, for the members. Other replicas take it for a question how far they
// are.
func (m *Feeders) PingGroup(text string) {
	s := m.Stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.takesMessages.Load() {
		s.send("REPLCONF", "GETACK", text)
	}
}

// Message is a command such as PUBLISH as replicas get it; nil if there is no stream that takes it. It is made at once, in
// a time that grows with it, so that Publish is quick.
func (m *Feeders) Message(args [][]byte) []byte {
	if !m.Stream.takesMessages.Load() {
		return nil
	}
	return resp.AppendCommand(nil, args...)
}

// Publish lets replicas have a message after all that was committed before; nil is none.
func (m *Feeders) Publish(message []byte) {
	if message != nil {
		m.Stream.publish(message)
	}
}

// TooFew reports whether there are fewer replicas than a write needs, or fewer members of the group in sync.
func (m *Feeders) TooFew() bool {
	if m.Gate != nil && m.Gate.TooFew() {
		return true
	}
	least := m.Settings.MinReplicas.Load()
	return least > 0 && int64(m.Stream.good(time.Now(), time.Duration(m.Settings.MaxLag.Load())*time.Second)) < least
}

// waiter waits until so many replicas have a part of the stream.
type waiter struct {
	is     func() bool // they have
	end    func()      // lets it go on
	isOver func() bool // it waits no longer
}

// Await calls end once a condition holds, perhaps before it returns. The condition is of what replicas have acknowledged
// (Stream.Acknowledged, Stream.OnDisk), and is asked whenever they have acknowledged more. end must be quick. isOver reports
// whether that is of no use any more.
func (m *Feeders) Await(is func() bool, end func(), isOver func() bool) (forget func()) {
	w := &waiter{is: is, end: end, isOver: isOver}
	m.waiting.Lock()
	if m.waiters = append(m.waiters, w); len(m.waiters) > m.pruneAt { // those whose clients have left
		m.drop(func(w *waiter) bool { return w.isOver() })
		m.pruneAt = 2*len(m.waiters) + 16
	}
	m.waiting.Unlock()
	m.Stream.AskForAcks()
	m.acknowledged() // it may have been before
	return func() {
		m.waiting.Lock()
		defer m.waiting.Unlock()
		m.drop(func(other *waiter) bool { return other == w })
	}
}

// acknowledged lets those go on who have waited for what has been acknowledged.
func (m *Feeders) acknowledged() {
	m.waiting.Lock()
	defer m.waiting.Unlock()
	if len(m.waiters) > 0 {
		m.drop(func(w *waiter) bool {
			enough := w.is()
			if enough {
				w.end()
			}
			return enough
		})
	}
}

func (m *Feeders) drop(done func(*waiter) bool) {
	kept := m.waiters[:0]
	for _, w := range m.waiters {
		if !done(w) {
			kept = append(kept, w)
		}
	}
	clear(m.waiters[len(kept):])
	m.waiters = kept
}
