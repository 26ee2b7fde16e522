package server

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/latency"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/scripts"
	"github.com/stavedb/stave/server/internal/settings"
	"github.com/stavedb/stave/server/internal/slowlog"
	"github.com/stavedb/stave/server/internal/stats"
	"github.com/stavedb/stave/server/internal/tracking"
)

// Server is what the sessions on one store share: settings, counters, the list of clients. Its
// methods are safe for concurrent use.
type Server struct {
	store      *db.Store
	options    Options
	pauseAt    int           // bytes of replies that pause a session
	timeToAuth time.Duration // of a connection; then it is closed
	runID      string
	started    time.Time

	nextID   atomic.Int64
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
	scripts  scripts.Shared
	users    *acl.Users
	aclLog   acl.Log

	open            atomic.Int64 // connections of all listeners, of which maxclients is the limit
	unauthenticated atomic.Int64 // connections that take a slot for those that have not authenticated

	systemErrorAt atomic.Int64 // nanoseconds after started of the last line of the log about one; 0 before the first

	counted    counted
	servesHTTP atomic.Bool // its connections need descriptors, too

	secure    atomic.Pointer[TLS]   // whose certificate /metrics shows; nil without one
	bound     atomic.Pointer[Bound] // what ServeBound serves; nil without it
	config    *settings.Config
	encodings command.Encodings

	reloadMu sync.Mutex     // guards reloads, reloaded and given, and that one reload or CONFIG REWRITE runs at a time
	given    [][]string     // the users as the file of settings has them, by Users.Given
	reloads  []func() error // what OnReload has added
	reloaded bool           // the reload that runs has changed something

	mu       sync.Mutex         // guards the four below
	clients  map[int64]*Session // connected, by id
	address  net.Addr           // of the listener, once Serve has one
	serving  map[int]func()     // ends each Serve that runs: see endedBy
	servings int                // calls of Serve so far
}

// New returns a server on store. It starts nothing: Serve and NewSession do. o may be nil; a value
// in it that makes no sense is an error that names the field. The order matters: settings come after
// what they set, and users after the settings that name their file. What New has attached to the
// store (tracking, libraries) does nothing until a session uses it.
func New(store *db.Store, o *Options) (*Server, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	v := &Server{
		store:      store,
		options:    options,
		pauseAt:    defaultPauseOutput,
		timeToAuth: defaultTimeToAuth,
		runID:      hex.EncodeToString(id[:]),
		started:    time.Now(),
		clients:    make(map[int64]*Session),
		serving:    make(map[int]func()),
	}
	v.counters.Init(table.Size)
	v.counters.Saves.Init(v.started, store.Stats().Sequence)
	v.hub.Limits.Init()
	v.tracked.Init(store, &v.hub.Limits, v.trackingClient)
	v.tunables.init(&v.options)
	v.slowLog.Limit(defaultSlowMax)
	v.replies.init(v.options.ClientMemory)
	if err := v.initConfig(); err != nil {
		return nil, err
	}
	v.scripts.Init(RedisVersion, table, store, v.options.Logger)
	v.scripts.Libraries.Current() // so that what is wrong with one is in the log from the beginning
	if err := v.initUsers(); err != nil {
		return nil, err
	}
	return v, nil
}

// register makes a session visible to CLIENT LIST and CLIENT KILL.
func (v *Server) register(s *Session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clients[s.id] = s
}

// unregister is its inverse. It may be called twice. Somebody who has copied the list before still has
// the session: its client must bear to be asked, woken and killed after its end.
func (v *Server) unregister(s *Session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.clients, s.id)
}

// session returns the connected session of that id, nil if there is none or it was killed.
func (v *Server) session(id int64) *Session {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.clients[id]; s != nil && !s.client.killed.Load() {
		return s
	}
	return nil
}

// trackingClient is the side of it that tracks keys, nil if the client has gone. Package tracking calls it for the
// target of a redirection, with the keys of a commit locked: so nothing may lock keys while it holds v.mu.
func (v *Server) trackingClient(id int64) *tracking.Client {
	if s := v.session(id); s != nil {
		return &s.client.tracking
	}
	return nil
}

// sessions returns the connected sessions by ascending id, with those that were killed and have not ended yet: listed
// leaves them out. It is a copy: the sessions run on, and some may end before the caller has read the list. Sorting
// takes O(n log n) with v.mu held, which only connections that come and go wait for.
func (v *Server) sessions() []*Session {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := make([]*Session, 0, len(v.clients))
	for _, s := range v.clients {
		list = append(list, s)
	}
	sortSessions(list)
	return list
}

// listed returns the sessions that clients are told of: without those that were killed, as in Redis.
func (v *Server) listed() []*Session {
	return slices.DeleteFunc(v.sessions(), func(s *Session) bool { return s.client.killed.Load() })
}

// listenAddress returns host and port of the listener, or "" and "0" without one on TCP. Tools
// print it; a Unix socket has neither.
func (v *Server) listenAddress() (host, port string) {
	if b := v.bound.Load(); b != nil {
		p := b.set.Place()
		if p.Port == "0" && p.Encrypts {
			return p.Bind, p.TLSPort
		}
		return p.Bind, p.Port
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if tcp, ok := v.address.(*net.TCPAddr); ok {
		return tcp.IP.String(), strconv.Itoa(tcp.Port)
	}
	return "", "0"
}

// shownPort is port as CONFIG GET shows it.
func (v *Server) shownPort() string {
	if b := v.bound.Load(); b != nil {
		return b.set.Place().Port
	}
	_, port := v.listenAddress()
	return port
}

// shownTLSPort is tls-port as CONFIG GET shows it.
func (v *Server) shownTLSPort() string {
	if b := v.bound.Load(); b != nil {
		return b.set.Place().TLSPort
	}
	return v.config.Get("tls-port")
}

// databases is how many namespaces SELECT reaches. A number beyond the store's is reduced to it, so
// SELECT cannot choose a namespace that the store lacks.
func (v *Server) databases() int {
	if n := v.options.Databases; n > 0 {
		return min(n, v.store.Namespaces())
	}
	return v.store.Namespaces()
}
