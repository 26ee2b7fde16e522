package shared

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/gate"
	"github.com/stavedb/stave/server/internal/latency"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/slowlog"
	"github.com/stavedb/stave/server/internal/stats"
	"github.com/stavedb/stave/server/internal/tracking"
)

// DefaultTimeToAuth is how long a connection may take to authenticate; then it is closed.
const DefaultTimeToAuth = 10 * time.Second

// defaultPauseOutput is how many bytes of replies may wait for a client before its session stops
// executing commands: so much memory does a client take that sends requests and reads no replies.
// Tests make it smaller.
const defaultPauseOutput = 1 << 20

// RedisVersion is the version of Redis that clients may take the server for: the last one that Stave follows in all that it
// has, and was compared with. docs/COMMANDS.md says what of it is missing, first of all the modules, and what of later
// versions is there: that is why it is no later one.
const RedisVersion = "8.0.6"

// State is what the sessions of one server share. It executes nothing. Its methods are safe for concurrent use.
type State struct {
	Store      *db.Store
	Table      *command.Table
	Options    Options
	PauseAt    int           // bytes of replies that pause a session
	TimeToAuth time.Duration // of a connection; then it is closed
	RunID      string
	Started    time.Time

	Clients  clients.List
	Counters stats.Counters
	evicting sync.Mutex   // held while clients are closed for what they hold
	left     stats.Client // the largest buffers of clients that have left: see RecentBuffers
	Tunables tunables
	Hub      pubsub.Hub
	Notifier notifier
	Tracked  tracking.Table
	SlowLog  slowlog.Log

	LargeRequests, LargeReplies slowlog.Log

	Spikes  latency.Spikes
	Pause   pause
	Replies replyBudget
	Users   *acl.Users
	ACLLog  acl.Log

	Open            atomic.Int64 // connections of all listeners, of which maxclients is the limit
	Unauthenticated atomic.Int64 // connections that take a slot for those that have not authenticated

	systemErrorAt atomic.Int64 // nanoseconds after started of the last line of the log about one; 0 before the first

	Replicas  *replication.Feeders
	Gate      *gate.Gate // of a member of a group; nil without one. It is set before the first session
	Member    Member     // the same
	Settings  *Settings
	Following Following // its part as a replica
	Failover  Failover
	Server    ServerFuncs
	counted   counted
	Encodings command.Encodings
}

// Member is the server's part in its group, for sessions and for the link to the primary.
type Member interface {
	// Known is the newest record of the group that the server has seen.
	Known() group.Versioned
	// Slots are those of the group's keys; all while the server has not seen the record.
	Slots() group.Slots
	// Others are the other groups of the cluster, by name.
	Others() []Group
	// Place says which member the server is.
	Place() Place
	// Ping adds a ping to the stream at once, of a primary.
	Ping()
	// IsStrict reports whether what a reply shows is to be confirmed by all members in sync after it was read.
	IsStrict() bool
	// Greeted is asked whether a member may follow this server, which has to be the primary of the term that the member says.
	Greeted(text string) (*replication.Membership, error)
	// Greeting is what the server says to its primary: an error if that is not this master.
	Greeting(m Master) (text string, err error)
	// Pinged and Applied are for the link: see replication.Replica.
	Pinged(ping string, offset int64) (ack string)
	Applied(offset int64) (ack string)
}

// Place is that of a server in its group.
type Place struct {
	Group, ID string
	Address   string // where others reach it
}

// Group is another group of the cluster.
type Group struct {
	Name string
	group.Record
	Owns group.Slots // that this server's group, and earlier ones by name, do not have
}

// ErrOfGroup refuses what the group of a server decides.
const ErrOfGroup command.Error = "ERR This server is a member of a group, whose members choose the primary: stop a primary to have another one"

// ServerFuncs are what the server as a whole does, for commands that ask for it.
type ServerFuncs struct {
	Info     func(sections ...string) string
	ShutDown func() (serving bool) // ends it, and does not wait for that
}

// Options are the options of a server that do not change while it runs. server.Options says what they mean.
type Options struct {
	Databases, MaxArgument, MaxReply, MaxQueue  int
	PartialTimeout, WriteTimeout, ShutdownGrace time.Duration
	Cluster, Debug, DebugRemote, AllowPlainText bool
	EventLoop                                   bool   // the transport, where it has a choice
	Loops                                       int    // event loops of a listener
	ACLFile, Transport, Version                 string // Transport as CONFIG GET shows it
	Dir                                         string // that the program shows to clients; "" for that of the store
	Logger                                      *slog.Logger
}

// New returns the state of a server without users, with tunables as the options give them.
func New(store *db.Store, table *command.Table, o Options) *State {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	v := &State{
		Store:      store,
		Table:      table,
		Options:    o,
		PauseAt:    defaultPauseOutput,
		TimeToAuth: DefaultTimeToAuth,
		RunID:      hex.EncodeToString(id[:]),
		Started:    time.Now(),
	}
	v.Counters.Init(table.Size)
	v.Counters.Saves.Init(v.Started, store.Stats().Sequence)
	v.Hub.Limits.Init()
	v.Tracked.Init(store, &v.Hub.Limits, v.Clients.Tracking)
	v.SlowLog.Limit(defaultSlowMax)
	v.LargeRequests.Limit(defaultSlowMax)
	v.LargeReplies.Limit(defaultSlowMax)
	v.Encodings.Init()
	v.Tunables.MaxMemory.Store(store.Evict().Memory)
	v.Replicas = replication.NewFeeders(store)
	v.Failover.state, v.Failover.requested = v, make(chan struct{}, 1)
	return v
}

// Databases is how many namespaces SELECT reaches. A number beyond the store's is reduced to it, so
// SELECT cannot choose a namespace that the store lacks.
func (v *State) Databases() int {
	if n := v.Options.Databases; n > 0 {
		return min(n, v.Store.Namespaces())
	}
	return v.Store.Namespaces()
}

// ModeName is the mode as INFO and HELLO name it.
func (v *State) ModeName() string {
	if v.Options.Cluster {
		return "cluster"
	}
	return "standalone"
}

// FullLimits are the parser's limits for a client that has authenticated.
func (v *State) FullLimits() resp.Limits { return resp.Limits{Bulk: v.Options.MaxArgument} }

// Save makes every commit so far durable. The log is all there is to save, and it is written at every commit: SAVE and
// BGSAVE make what it has durable at once, whatever the store's sync mode.
func (v *State) Save() error {
	start := time.Now()
	sequence := v.Store.Log().Sequence() // before the sync: what comes meanwhile may not be part of it
	err := v.Store.Sync()
	v.Counters.Saves.Note(start, sequence, err)
	if err != nil {
		v.Options.Logger.Error("a save failed", "error", err)
	}
	return err
}
