// Package member makes a server a member of a group, one of which is the primary: package internal/group decides which, and what may be
// shown. A member that is not the primary follows it as a replica does.
//
// Pings are in the stream for replicas, so that one that arrives says that all before it has. What a member acknowledges is how far it has
// applied the stream, as durably as its commits are acknowledged. The gate of the server is told what all in sync have.
package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/backoff"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/gate"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/shared"
)

// Options say which member of which group a server is.
type Options struct {
	Group   string
	Records group.Service
	group.Options
	// Refused is called, once, when the server cannot be a member of the group, whatever happens: its slots are another one's, or other ones.
	Refused func(error)

	// Of simulators. Clock is that of leases, and Boot the id of the time since the machine has booted; by default they are this machine's.
	Clock func() time.Duration
	Boot  string
}

// Member is a server's part in its group. Its methods may be called by any goroutine.
type Member struct {
	state   *shared.State
	options Options
	said    atomic.Pointer[group.Ack]      // what the driver wants the primary to be told
	wake    chan struct{}                  // has an element when the role may have changed
	slots   atomic.Pointer[group.Slots]    // of the record; nil: it is not known yet
	others  atomic.Pointer[[]shared.Group] // of the cluster
	clock   atomic.Int64                   // up to which a primary that it has followed may have shown what is due as gone, Unix ms

	mu                sync.Mutex              // guards the rest
	self              identity                // as the store has it
	reading, swapping backoff.Backoff         // of the record: what the log has said of it
	driver            *group.Driver           // nil while the server does not serve
	records           map[string]group.Record // of the other groups, by name
	known             group.Versioned         // of the driver that ran last
	begun             uint64                  // the term whose primary the server is; 0: of none
	end               int64                   // of the stream, when it began
	followed          uint64                  // the term whose primary it follows
	master            shared.Master           // that primary
}

// Join makes a server, which has no session yet, a member of a group.
func Join(state *shared.State, o Options) (*Member, error) {
	if o.Clock == nil {
		o.Clock, o.Boot = group.Now, bootID()
	}
	self, err := identify(state.Store, o.Group, o.Boot)
	if err != nil {
		return nil, err
	}
	o.Self.Incarnation = self.incarnation
	m := &Member{state: state, options: o, self: self, wake: make(chan struct{}, 1)}
	state.Member, state.Gate = m, gate.New(o.Clock)
	state.Replicas.Gate, state.Replicas.GroupAcked = state.Gate, m.acked
	return m, nil
}

// lookEvery is how often a server looks whether its store has failed.
const lookEvery = time.Second

// Run plays the part until ctx ends.
func (m *Member) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.mu.Lock()
	noted := m.self.noted
	m.mu.Unlock()
	service := records{group.Noting(m.options.Records, noted, m.note), m}
	taken := make(chan error, 1)
	d := m.drive(func(h group.Hooks) *group.Driver {
		h.Refused = func(err error) {
			select {
			case taken <- err:
			default:
			}
		}
		return group.NewDriver(m.options.Options, service, h)
	})
	defer serverside.DB.SetExpiryCycle(m.state.Store, true)
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	running.Go(func() { m.watchOthers(ctx) })
	var retry backoff.Backoff
	for ctx.Err() == nil {
		if m.state.Store.Stats().State == db.StateFailed {
			m.state.Options.Logger.Error("the log of the store has failed: the server takes no part in its group until it is restarted")
			break // without a driver it sends no pings, and acknowledges nothing
		}
		now := d.State()
		if err := m.learnSlots(now.Known); err != nil {
			m.options.Refused(err)
			break
		}
		again, wake := lookEvery, m.wake
		if err := m.play(now); err == nil {
			retry.Worked()
		} else {
			if retry.Failed(m.options.Retry, lookEvery, err) {
				m.state.Options.Logger.Error("the server cannot play its part in its group; it tries again", "error", err)
			}
			again, wake = m.options.Retry, nil
		}
		select {
		case <-ctx.Done():
		case err := <-taken:
			m.options.Refused(fmt.Errorf("the group %s cannot be begun: %w", m.options.Group, err))
			cancel()
		case <-wake:
		case <-time.After(again):
		}
	}
	cancel()
	running.Wait()
	m.changed() // the driver has ended, and with it the term
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.driver = d.State().Known, nil
}

// note keeps what is noted of the record.
func (m *Member) note(n group.Noted) error {
	m.mu.Lock()
	self := m.self
	m.mu.Unlock()
	self.noted = n
	if err := self.write(m.state.Store); err != nil { // one at a time
		return err
	}
	m.mu.Lock()
	m.self = self
	m.mu.Unlock()
	return nil
}

// records is the service that the driver asks. The log says once why it fails.
type records struct {
	group.Service
	m *Member
}

func (r records) Read(ctx context.Context) (group.Versioned, error) {
	v, err := r.Service.Read(ctx)
	r.m.outcome(&r.m.reading, "who is the primary of the group cannot be read; the server tries again", err)
	return v, err
}

func (r records) Swap(ctx context.Context, w group.Swap) (group.Versioned, error) {
	v, err := r.Service.Swap(ctx, w)
	r.m.outcome(&r.m.swapping, "who is the primary of the group, or in sync with it, cannot be changed; the server tries again", err)
	return v, err
}

// outcome logs an error of the service, once.
func (m *Member) outcome(of *backoff.Backoff, what string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		of.Worked()
	case !errors.Is(err, context.Canceled) && of.Failed(m.options.Retry, lookEvery, err):
		m.state.Options.Logger.Error(what, "error", err)
	}
}

// drive makes the driver.
func (m *Member) drive(by func(group.Hooks) *group.Driver) *group.Driver {
	stream := m.state.Replicas.Stream
	d := by(group.Hooks{
		Send: m.send, Changed: m.changed,
		Offset: func() uint64 { return uint64(stream.Position().Offset) },
	})
	m.mu.Lock()
	m.driver, m.followed = d, 0
	m.mu.Unlock()
	serverside.DB.SetExpiryCycle(m.state.Store, false) // until it is the primary
	return d
}

// Simulate is Run for simulators, which call Step of the driver, and what is returned: that makes the server what the record says.
func (m *Member) Simulate(asks func(group.Action)) (d *group.Driver, play func() error) {
	d = m.drive(func(h group.Hooks) *group.Driver {
		return group.NewStepped(m.options.Options, m.options.Clock, asks, h)
	})
	return d, func() error { return m.play(d.State()) }
}

// isPlayed reports whether the server is what the record says, or waits until the record says something else. m.mu is locked.
func (m *Member) isPlayed(now group.State) bool {
	switch term := now.Known.Term; {
	case now.Known.Version == 0:
		return true
	case now.IsPrimary:
		return m.begun == term
	case now.Known.Primary == m.options.Self.ID: // an earlier process was the primary
		return true
	default:
		return m.followed == term
	}
}

// play makes the server what the record says.
func (m *Member) play(now group.State) error {
	m.mu.Lock()
	played := m.isPlayed(now)
	m.mu.Unlock()
	term := now.Known.Term
	switch {
	case played:
		return nil
	case now.IsPrimary:
		return m.lead(term)
	}
	primary, err := parseAddress(now.Known.Addresses[now.Known.Primary])
	if err != nil {
		return fmt.Errorf("where the primary %s is: %w", now.Known.Primary, err)
	}
	m.state.Options.Logger.Info("the server follows the primary of its group", "term", term, "primary", now.Known.Primary, "address", primary)
	m.mu.Lock()
	m.endTerm()
	m.followed, m.master = term, primary // first: the link asks
	m.mu.Unlock()
	if err := m.state.Failover.ReplicaOf(primary); err != nil {
		m.mu.Lock()
		m.followed = 0
		m.mu.Unlock()
		return err
	}
	return nil
}

// endTerm ends the term in which the server was the primary, if there was one. m.mu is locked.
func (m *Member) endTerm() {
	if m.begun == 0 {
		return
	}
	m.state.Options.Logger.Warn("the server is not the primary of its group any more", "term", m.begun)
	m.begun = 0
	m.state.Following.EndTerm()
	serverside.DB.SetExpiryCycle(m.state.Store, false)
}

// lead makes the server the primary.
func (m *Member) lead(term uint64) error {
	m.mu.Lock()
	m.followed = 0
	m.mu.Unlock()
	if m.state.Following.IsReplica() {
		if err := m.state.Failover.ReplicaOf(shared.Master{}); err != nil {
			return err
		}
	}
	end, err := m.state.Replicas.BeginTerm()
	if err != nil {
		return err
	}
	if err := serverside.DB.PassUntil(m.state.Store, m.clock.Load()); err != nil {
		return err
	}
	serverside.DB.SetExpiryCycle(m.state.Store, true)
	m.state.Options.Logger.Info("the server is the primary of its group", "term", term)
	m.mu.Lock()
	m.begun, m.end = term, end
	m.mu.Unlock()
	m.changed()
	return nil
}

// changed tells the gate what may be shown.
func (m *Member) changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.driver == nil {
		return
	}
	now := m.driver.State()
	if now.IsPrimary && now.Known.Term == m.begun {
		m.feed(now)
	} else {
		m.endTerm()
	}
	if !m.isPlayed(now) {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

// feed tells the gate how far the group is. While fewer members are in sync than a write needs, what has been written since the term began
// is not shown: its client would be told that so many have it.
func (m *Member) feed(now group.State) {
	m.state.Gate.Extend(now.LeaseEnd, now.TakesWrites)
	if now.TakesReads {
		m.state.Gate.Round(int64(now.Gate))
	}
	switch {
	case now.TakesWrites:
		m.state.Gate.Confirm(int64(now.Gate))
	case now.TakesReads:
		m.state.Gate.Confirm(min(int64(now.Gate), m.end))
	}
}

// send takes a message of the driver.
func (m *Member) send(s group.Send) {
	switch message := s.Message.(type) {
	case group.Ping:
		p := ping{m.options.Group, m.options.Self.ID, serverside.DB.Clock(m.state.Store), message}
		m.state.Replicas.PingGroup(p.String())
	case group.Ack: // in a call of Pinged or Applied
		m.said.Store(&message)
	}
}

// running is the driver; nil while the server does not serve.
func (m *Member) running() *group.Driver {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.driver
}

// Known is the newest record that the server has seen.
func (m *Member) Known() group.Versioned {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.driver == nil {
		return m.known
	}
	return m.driver.State().Known
}

// Place is which member the server is.
func (m *Member) Place() shared.Place {
	return shared.Place{Group: m.options.Group, ID: m.options.Self.ID, Address: m.options.Address}
}

// Info are the fields of INFO replication that a member has besides others, names and values in turn.
func (m *Member) Info() []any {
	known, role := m.Known(), "member"
	m.mu.Lock()
	begun, noted := m.begun, m.self.noted
	m.mu.Unlock()
	if begun != 0 {
		role = "primary"
	}
	ids := make([]string, 0, len(known.InSync))
	for _, i := range known.InSync {
		ids = append(ids, i.ID)
	}
	return []any{
		"group_name", m.options.Group, "group_id", m.options.Self.ID, "group_incarnation", m.options.Self.Incarnation, "group_role", role, "group_term", known.Term,
		"group_primary", known.Primary, "group_in_sync", strings.Join(ids, ","), "group_slots", m.Slots(), "group_noted", noted.String(),
	}
}

// Ping adds a ping to the stream at once.
func (m *Member) Ping() {
	if d := m.running(); d != nil {
		d.Ping()
	}
}

// IsStrict reports whether reads are strict.
func (m *Member) IsStrict() bool { return m.options.StrictReads }

// Errors of members that do not agree on who is the primary yet. They ask again.
const (
	errNotPrimary command.Error = "ERR this server is not the primary of the member's group in the member's term"
	errOtherGroup command.Error = "ERR this server is a member of another group"
)

var errNoMaster = errors.New("the server is about to learn who the primary of its group is")

// Greeted is for the primary: whether a member may follow it.
func (m *Member) Greeted(text string) (*replication.Membership, error) {
	g, err := parseGreeting(text)
	switch {
	case err != nil:
		return nil, err
	case g.group != m.options.Group:
		return nil, errOtherGroup
	case g.ID == m.options.Self.ID:
		return nil, command.Errorf("ERR this server is the member %s of the group: each has an id of its own", g.ID)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun == 0 || m.begun != g.Term {
		return nil, errNotPrimary
	}
	return &g.Membership, nil
}

// Greeting is for a member that follows.
func (m *Member) Greeting(master shared.Master) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.followed == 0 || m.master != master {
		return "", errNoMaster
	}
	g := greeting{m.options.Group, replication.Membership{Member: m.options.Self, Term: m.followed, Address: m.options.Address}}
	return g.String(), nil
}

// Pinged takes a ping of the primary, up to which everything has been applied.
func (m *Member) Pinged(text string, offset int64) (ack string) {
	p, err := parsePing(text)
	if err != nil || p.group != m.options.Group {
		return "" // another question how far the replica is
	}
	// The primary may show what is due until its lease is over. Only one goroutine is here.
	m.clock.Store(max(m.clock.Load(), p.clock+m.options.Lease.Milliseconds()))
	return m.tell(func(d *group.Driver) { d.Pinged(p.from, p.Ping, uint64(offset)) })
}

// Applied says that more has been applied.
func (m *Member) Applied(offset int64) (ack string) {
	m.mu.Lock()
	term := m.followed
	m.mu.Unlock()
	return m.tell(func(d *group.Driver) { d.Applied(term, uint64(offset)) })
}

// tell tells the driver something, and returns what that wants the primary to be told.
func (m *Member) tell(do func(*group.Driver)) (ack string) {
	d := m.running()
	if d == nil {
		return ""
	}
	do(d)
	a := m.said.Swap(nil)
	if a == nil || !m.isDurable() {
		return ""
	}
	return encodeAck(a)
}

// isDurable reports whether all that has been applied is as durable as commits are to be. What was applied when a sync failed is not, and
// is never acknowledged: the primary goes on without this member.
func (m *Member) isDurable() bool {
	store := m.state.Store
	return store.SyncMode() != db.SyncAlways || serverside.DB.IsOnDisk(store, serverside.DB.NextSequence(store))
}

// acked takes what a member says, when the stream has a length.
func (m *Member) acked(from *replication.Membership, text string, offset int64) {
	a, err := parseAck(text)
	if err != nil || a.Term != from.Term {
		return
	}
	a.Member, a.Address, a.Offset = from.Member, from.Address, min(a.Offset, uint64(offset))
	if d := m.running(); d != nil {
		d.Acked(a)
	}
}

// parseAddress reads where a server is: a host and a port.
func parseAddress(text string) (shared.Master, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return shared.Master{}, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return shared.Master{}, err
	}
	return shared.Master{Host: host, Port: int(n)}, nil
}
