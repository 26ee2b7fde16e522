package shared

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/settings"
	"github.com/stavedb/stave/server/internal/stats"
)

// Master is whose replica a server is.
type Master struct {
	Host string
	Port int
}

// IsZero is set for a server that is a master itself.
func (m Master) IsZero() bool { return m == Master{} }

// IsValid reports whether the host may be one: a word of one line.
func (m Master) IsValid() bool {
	host, _, err := settings.ParseMaster(m.Host + " " + strconv.Itoa(m.Port))
	return err == nil && host == m.Host
}

func (m Master) String() string { return net.JoinHostPort(m.Host, strconv.Itoa(m.Port)) }

func parseMaster(value string) (m Master, err error) {
	m.Host, m.Port, err = settings.ParseMaster(value)
	return m, err
}

// LinkState is what a replica does about its master, in Redis's words for ROLE.
type LinkState string

const (
	LinkDown       LinkState = "connect"    // waiting to connect
	LinkConnecting LinkState = "connecting" // connecting, and introducing itself
	LinkSyncing    LinkState = "sync"       // loading everything
	LinkUp         LinkState = "connected"
	linkStopped    LinkState = "none" // it has stopped, and does not connect again by itself; LinkStatus.Stopped has that
)

// LinkStatus are the figures of the link to a master at one moment.
type LinkStatus struct {
	Master    Master
	State     LinkState
	Offset    int64     // in the stream of the master that is applied; -1 if there is none
	ReplID    string    // of the stream; "" if there is none
	LastIO    time.Time // when bytes came last; zero for never
	DownSince time.Time // zero while it is up
	SyncBytes int64     // loaded of the full synchronization that runs
	Stopped   bool      // it does not try again by itself
	HandsOver bool      // the master is the server's successor, and is to be told so: see Failover
	Err       string    // why it is down; "" if nothing has failed

	FullSyncs, PartialSyncs int64 // that the server has had since it began
	Failures                int64 // of the link since then
	Ignored                 int64 // commands that failed and were skipped, with replica-ignore-errors, since a full synchronization
}

// Following is the server's part as a replica: whose it is, and how the link to that does. What the transport drives reads
// the one and reports the other.
type Following struct {
	state *State
	is    atomic.Bool            // cheap to ask, for every command does
	up    atomic.Bool            // the link is up
	to    atomic.Pointer[Master] // where clients are sent that can be: the master, also while it is being changed

	changing sync.Mutex // held while the master is changed

	mu         sync.Mutex // guards the rest
	configured string     // what the setting said when the record was written
	status     LinkStatus
	between    bool          // the master is being changed: the link to the one in status is to end
	changed    chan struct{} // closed when the master has been changed
	idle       chan struct{} // closed while nothing is applied
}

// The record of the store: the state, what the setting said when it was written, the master, and "failover" if that is still
// to become one, each a line.
func encodeFollowing(m Master, configured string, handsOver bool) []byte {
	if m.IsZero() {
		return []byte("n\n" + configured + "\n")
	}
	b := fmt.Appendf([]byte{serverside.IsReplica}, "\n%s\n%s %d\n", configured, m.Host, m.Port)
	if handsOver {
		b = append(b, handsOverLine...)
	}
	return b
}

const handsOverLine = "failover\n"

func decodeFollowing(value []byte) (m Master, configured string, handsOver bool, err error) {
	lines := bytes.Split(value, []byte("\n"))
	if len(value) == 0 || len(lines) < 2 {
		return m, "", false, nil
	}
	configured = string(lines[1])
	if value[0] == serverside.IsReplica && len(lines) > 2 {
		m, err = parseMaster(string(lines[2]))
		handsOver = bytes.HasSuffix(value, []byte("\n"+handsOverLine))
	}
	return m, configured, handsOver, err
}

// Start takes up what was before: the setting replicaof counts when it is another one than when the store noted its master
// last, so that a promoted replica stays a master although its unit file or container still names the old one. Without the
// setting nothing changes: a shell on the directory has none.
func (f *Following) Start(v *State, setting string, isSet bool) error {
	f.state = v
	f.changed, f.idle = make(chan struct{}), make(chan struct{})
	close(f.idle)
	f.status.Offset = -1
	kept, configured, handsOver, err := decodeFollowing(serverside.DB.ReplicaOf(v.Store))
	if err != nil {
		return fmt.Errorf("server: the record of the store's master: %w", err)
	}
	asked, err := parseMaster(setting)
	if err != nil {
		return fmt.Errorf("server: replicaof: %w", err)
	}
	if !isSet {
		setting = configured
	}
	f.configured = setting
	if !kept.IsZero() {
		v.Replicas.Resume()
	}
	if f.note(kept, handsOver); handsOver && (setting == configured || asked == kept) {
		v.Failover.resume()
	}
	switch {
	case setting == configured:
		return nil
	case asked != kept:
		return f.change(asked, false)
	case kept.IsZero(): // first: after a write the stream that the store keeps is none any more
		if err := v.Replicas.Start(); err != nil {
			return fmt.Errorf("server: where the replicas are: %w", err)
		}
	}
	if err := serverside.DB.SetReplicaOf(v.Store, encodeFollowing(kept, setting, handsOver), !kept.IsZero()); err != nil {
		return errors.Join(err, v.Replicas.Stop())
	}
	return nil
}

// RedirectOf is what a replica replies to a client that has said by CLIENT CAPA that it can be sent to the master; nil for
// others. In cluster mode clients follow the slots.
func (v *State) RedirectOf(c *clients.Client) error {
	if !c.Redirect.Load() || v.Options.Cluster {
		return nil
	}
	m := v.Following.to.Load()
	if m == nil || m.IsZero() {
		return nil
	}
	return command.Errorf("REDIRECT %s:%d", m.Host, m.Port)
}

// IsReplica reports whether the server has a master.
func (f *Following) IsReplica() bool { return f.is.Load() }

// IsStale reports whether what the server shows may be old: it is a replica, and its link is down.
func (f *Following) IsStale() bool { return f.is.Load() && !f.up.Load() }

// Status is how the link does.
func (f *Following) Status() LinkStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Report changes the figures of the link to a master, unless the server has another one by now, or gets one.
func (f *Following) Report(of Master, change func(*LinkStatus)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.follows(of) {
		return
	}
	change(&f.status)
	f.up.Store(f.status.State == LinkUp)
}

// Master is whom the link is to follow, nobody while the master is being changed, and a channel that is closed when that changes.
func (f *Following) Master() (m Master, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.between {
		return Master{}, f.changed
	}
	return f.status.Master, f.changed
}

// Follows reports whether the server is to have what a master sends. It is not from the moment on in which the master is being changed.
func (f *Following) Follows(m Master) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.follows(m)
}

func (f *Following) follows(m Master) bool { return !f.between && f.status.Master == m }

// Setting is the master as a setting has it; "" for none.
func (f *Following) Setting() string {
	m := f.Status().Master
	if m.IsZero() {
		return ""
	}
	return m.Host + " " + strconv.Itoa(m.Port)
}

// rewritten notes that the setting replicaof says something else now. Otherwise the next start would take that for the wish of an
// operator, and make a server that has been promoted since a replica again.
func (f *Following) rewritten(setting string) error {
	f.changing.Lock()
	defer f.changing.Unlock()
	if f.configured == setting {
		return nil
	}
	s := f.Status()
	if err := serverside.DB.SetReplicaOf(f.state.Store, encodeFollowing(s.Master, setting, s.HandsOver), !s.Master.IsZero()); err != nil {
		return err
	}
	f.configured = setting
	return nil
}

// set changes the master. It is called with the lock of Failover, which owns who it is.
func (f *Following) set(to Master, handsOver bool) error {
	f.changing.Lock()
	defer f.changing.Unlock()
	return f.change(to, handsOver)
}

// change changes the master, to one that is to be told to become one if the server hands over. Until it has, others are told of the
// master before.
func (f *Following) change(to Master, handsOver bool) error {
	was := f.Status()
	if !to.IsZero() {
		f.to.Store(&to)
		f.is.Store(true) // first: clients are refused from here on
		f.state.endWaitsOfMaster()
		f.EndTerm()
	}
	f.mu.Lock()
	close(f.changed) // which ends the link
	f.changed = make(chan struct{})
	f.between = true
	f.up.Store(false)
	if f.status.State != LinkDown {
		f.status.State, f.status.DownSince = LinkDown, time.Now()
	}
	idle := f.idle
	f.mu.Unlock()
	<-idle
	if err := f.keep(was.Master, to, handsOver); err != nil {
		f.note(was.Master, was.HandsOver)
		return err
	}
	f.note(to, handsOver)
	return nil
}

// keep makes the store, and the stream for replicas, those of a replica or of a master.
func (f *Following) keep(was, to Master, handsOver bool) error {
	store, value := f.state.Store, encodeFollowing(to, f.configured, handsOver)
	switch {
	case was.IsZero() && !to.IsZero():
		return f.state.Replicas.Follow(func(at func([]byte) (serverside.Origin, bool)) error {
			return serverside.DB.SetReplicaAt(store, value, at)
		})
	case !was.IsZero() && to.IsZero():
		return f.state.Replicas.Lead(func() error { return serverside.DB.SetReplicaOf(store, value, false) })
	}
	return serverside.DB.SetReplicaOf(store, value, !to.IsZero())
}

// endWaitsOfMaster ends the waits of commands such as BLPOP, for what a replica gets is not for them, and of WAIT.
func (v *State) endWaitsOfMaster() {
	for _, c := range v.Clients.All() {
		if w := c.Wait.Load(); w != nil && w.OfMaster {
			c.EndWait(clients.Demoted)
		}
	}
}

// EndTerm ends the time in which a member of a group was its primary: no reply leaves any more that waits for others, and who has got
// messages is to see that some are missing.
func (f *Following) EndTerm() {
	v := f.state
	if v.Gate == nil {
		return
	}
	v.Gate.End()
	for _, c := range v.Clients.All() {
		if c.Kind() == "pubsub" || c.Tracking.Mode() != nil {
			c.KillOnce(nil)
		}
	}
}

// note makes the server the replica of a master, for its sessions and its link.
func (f *Following) note(m Master, handsOver bool) {
	offset := int64(-1)
	if at, known := f.state.Replicas.Stream.Origin(); known && !m.IsZero() {
		offset = at.Offset
	}
	f.mu.Lock()
	close(f.changed)
	f.changed = make(chan struct{})
	f.status = LinkStatus{
		Master: m, HandsOver: handsOver, State: LinkDown, Offset: offset, DownSince: time.Now(), FullSyncs: f.status.FullSyncs, PartialSyncs: f.status.PartialSyncs,
		Failures: f.status.Failures, Ignored: f.status.Ignored,
	}
	f.between = false
	f.up.Store(false)
	f.to.Store(&m)
	switch g := f.state.Gate; {
	case g == nil:
	case m.IsZero():
		g.End() // until the group makes it the primary
	default:
		f.state.Replicas.FollowTerm()
	}
	f.is.Store(!m.IsZero())
	f.mu.Unlock()
}

// Begin begins to apply what a master sends, unless the server has another one by now. done ends it.
func (f *Following) Begin(m Master) (done func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.follows(m) || m.IsZero() {
		return nil, false
	}
	idle := make(chan struct{})
	f.idle = idle
	return func() { close(idle) }, true
}

// DivergedError is a command of the master that fails here, and did not there: the replica differs from its master.
type DivergedError struct {
	Name      string
	Arguments int
	Command   string // with its arguments, the beginning of them
	Database  int
	Reply     string
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("the master's command failed here: %s in database %d: %s", e.Command, e.Database, e.Reply)
}

// LogValue is what the log has of it: neither keys nor values.
func (e *DivergedError) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("%s with %d arguments in database %d: %.20s", e.Name, e.Arguments, e.Database, e.Reply))
}

// Info are the fields of INFO replication that a replica has and a master has not, names and values in turn; nil for a
// master.
func (f *Following) Info(now time.Time) []any {
	s := f.Status()
	if s.Master.IsZero() {
		return nil
	}
	up, since := "down", int64(-1)
	if s.State == LinkUp {
		up = "up"
	}
	if !s.LastIO.IsZero() {
		since = int64(now.Sub(s.LastIO) / time.Second)
	}
	syncing, stopped := 0, 0
	if s.Stopped {
		stopped = 1
	}
	if s.State == LinkSyncing {
		syncing = 1
	}
	info := []any{
		"master_host", s.Master.Host, "master_port", s.Master.Port, "master_link_status", up, "master_last_io_seconds_ago", since,
		"master_sync_in_progress", syncing, "slave_read_repl_offset", max(s.Offset, 0), "slave_repl_offset", max(s.Offset, 0),
	}
	if syncing == 1 {
		info = append(info, "master_sync_total_bytes", 0, "master_sync_read_bytes", s.SyncBytes, "master_sync_left_bytes", -s.SyncBytes,
			"master_sync_perc", "0.00", "master_sync_last_io_seconds_ago", since)
	}
	if up == "down" {
		info = append(info, "master_link_down_since_seconds", int64(now.Sub(s.DownSince)/time.Second))
	}
	if s.Err != "" {
		info = append(info, "master_link_error", oneLine(s.Err))
	}
	announced := 1
	if f.state.Settings.Config.Get("replica-announced") == "no" {
		announced = 0
	}
	return append(info, "slave_priority", f.priority(&s), "slave_read_only", 1, "replica_announced", announced, "replica_full_syncs", s.FullSyncs, "replica_partial_syncs", s.PartialSyncs,
		"replica_ignored_errors", s.Ignored, "replica_link_failures", s.Failures, "replica_stopped", stopped)
}

// Figures are the figures of the link for /metrics; nil for a master.
func (s *LinkStatus) Figures(now time.Time) *stats.Link {
	if s.Master.IsZero() {
		return nil
	}
	l := &stats.Link{
		Host: s.Master.Host, Port: s.Master.Port, IsUp: s.State == LinkUp, IsSyncing: s.State == LinkSyncing, IsStopped: s.Stopped, Offset: s.Offset,
		Silence: -1, SyncBytes: s.SyncBytes, FullSyncs: s.FullSyncs, Partial: s.PartialSyncs, Failures: s.Failures, Ignored: s.Ignored,
	}
	if !s.LastIO.IsZero() {
		l.Silence = now.Sub(s.LastIO)
	}
	if !s.DownSince.IsZero() {
		l.Down = now.Sub(s.DownSince)
	}
	return l
}

// priority is replica-priority, by which Sentinel chooses whom to promote. It is 0, never, for a server that has nothing of a
// master yet, and while everything is loaded: it has the data of before. Neither is one promoted that has stopped: its data
// differ from the master's, and get no newer.
func (f *Following) priority(s *LinkStatus) string {
	if s.State == LinkSyncing || s.Offset < 0 || s.Stopped {
		return "0"
	}
	return f.state.Settings.Config.Get("replica-priority")
}

// oneLine keeps a text to its line of INFO.
func oneLine(text string) string { return strings.NewReplacer("\r", " ", "\n", "; ").Replace(text) }

// Role is the answer to ROLE; nil for a master.
func (f *Following) Role() []any {
	s := f.Status()
	if s.Master.IsZero() {
		return nil
	}
	state := s.State
	if s.Stopped {
		state = linkStopped
	}
	return []any{"slave", s.Master.Host, s.Master.Port, string(state), s.Offset}
}
