package server

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/latency"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/slowlog"
	"github.com/stavedb/stave/server/internal/stats"
	"github.com/stavedb/stave/server/internal/tracking"
)

// defaultTimeToAuth is how long a connection may take to authenticate; then it is closed.
const defaultTimeToAuth = 10 * time.Second

// defaultPauseOutput is how many bytes of replies may wait for a client before its session stops
// executing commands: so much memory does a client take that sends requests and reads no replies.
// Tests make it smaller.
const defaultPauseOutput = 1 << 20

// redisVersion is the version of Redis that clients may take the server for. Some refuse to work
// below 7.0, and none asks for more than 7.2. What is of 7.4, such as deadlines of fields, is there
// all the same: clients that know of it ask for the command.
const redisVersion = "7.2.4"

// State is what the sessions of one server share. It executes nothing. Its methods are safe for concurrent use.
type State struct {
	store      *db.Store
	table      *command.Table
	options    stateOptions
	pauseAt    int           // bytes of replies that pause a session
	timeToAuth time.Duration // of a connection; then it is closed
	runID      string
	started    time.Time

	clients  clientSet
	counters stats.Counters
	left     stats.Client // the largest buffers of clients that have left: see recentBuffers
	tunables tunables
	hub      pubsub.Hub
	notifier notifier
	tracked  tracking.Table
	slowLog  slowlog.Log
	spikes   latency.Spikes
	pause    pause
	replies  replyBudget
	users    *acl.Users
	aclLog   acl.Log

	open            atomic.Int64 // connections of all listeners, of which maxclients is the limit
	unauthenticated atomic.Int64 // connections that take a slot for those that have not authenticated

	systemErrorAt atomic.Int64 // nanoseconds after started of the last line of the log about one; 0 before the first

	settings  *Live
	server    ServerFuncs
	counted   counted
	encodings command.Encodings
}

// ServerFuncs are what the server as a whole does, for commands that ask for it.
type ServerFuncs struct {
	Info     func(sections ...string) string
	ShutDown func() (serving bool) // ends it, and does not wait for that
}

// stateOptions are the options of a server that do not change while it runs. server.Options says what they mean.
type stateOptions struct {
	Databases, MaxArgument, MaxReply, MaxQueue  int
	PartialTimeout, WriteTimeout, ShutdownGrace time.Duration
	Cluster, Debug, DebugRemote, AllowPlainText bool
	EventLoop                                   bool   // the transport, where it has a choice
	ACLFile, Transport, Version                 string // Transport as CONFIG GET shows it
	Dir                                         string // that the program shows to clients; "" for that of the store
	Logger                                      *slog.Logger
}

// newState returns the state of a server without users, with tunables as the options give them.
func newState(store *db.Store, table *command.Table, o stateOptions) *State {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	v := &State{
		store:      store,
		table:      table,
		options:    o,
		pauseAt:    defaultPauseOutput,
		timeToAuth: defaultTimeToAuth,
		runID:      hex.EncodeToString(id[:]),
		started:    time.Now(),
	}
	v.counters.Init(table.Size)
	v.counters.Saves.Init(v.started, store.Stats().Sequence)
	v.hub.Limits.Init()
	v.tracked.Init(store, &v.hub.Limits, v.clients.tracking)
	v.slowLog.Limit(defaultSlowMax)
	v.encodings.Init()
	return v
}

// databases is how many namespaces SELECT reaches. A number beyond the store's is reduced to it, so
// SELECT cannot choose a namespace that the store lacks.
func (v *State) databases() int {
	if n := v.options.Databases; n > 0 {
		return min(n, v.store.Namespaces())
	}
	return v.store.Namespaces()
}

// modeName is the mode as INFO and HELLO name it.
func (v *State) modeName() string {
	if v.options.Cluster {
		return "cluster"
	}
	return "standalone"
}

// fullLimits are the parser's limits for a client that has authenticated.
func (v *State) fullLimits() resp.Limits { return resp.Limits{Bulk: v.options.MaxArgument} }

// save makes every commit so far durable. The log is all there is to save, and it is written at every commit: SAVE and
// BGSAVE make what it has durable at once, whatever the store's sync mode.
func (v *State) save() error {
	start := time.Now()
	sequence := v.store.Log().Sequence() // before the sync: what comes meanwhile may not be part of it
	err := v.store.Sync()
	v.counters.Saves.Note(start, sequence, err)
	if err != nil {
		v.options.Logger.Error("a save failed", "error", err)
	}
	return err
}
