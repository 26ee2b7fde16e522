package server

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/orphans"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/internal/member"
	"github.com/stavedb/stave/server/internal/scripting"
	"github.com/stavedb/stave/server/internal/shared"
)

// Server is what the sessions on one store share: settings, counters, the list of clients. Its
// methods are safe for concurrent use.
type Server struct {
	options Options
	state   *shared.State
	scripts scripting.Shared

	secure atomic.Pointer[TLS]   // whose certificate /metrics shows; nil without one
	bound  atomic.Pointer[Bound] // what ServeBound serves; nil without it

	member     *member.Member // of a group; nil for none
	following  whileServing
	takingPart whileServing
	refused    atomic.Pointer[error] // why it cannot be a member of its group; nil if it can
	orphans    orphans.Counter

	mu       sync.Mutex     // guards the three below
	address  net.Addr       // of the listener, once Serve has one
	serving  map[int]func() // ends each Serve that runs: see endedBy
	servings int            // calls of Serve so far
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
	if options.Config == nil {
		options.Config = NewConfig()
	}
	v := &Server{options: options, serving: make(map[int]func())}
	v.state = shared.New(store, table, options.fixed())
	v.state.Tunables.Init(options.MaxClients, options.IdleTimeout, options.ClientMemory)
	v.state.Replies.Init(options.ClientMemory)
	users := options.userSource(acl.New(table))
	v.state.Server = shared.ServerFuncs{Info: v.Info, ShutDown: v.shutDown}
	v.state.Settings = &shared.Settings{
		State: v.state, Config: options.Config.inner, Users: users, Overrides: options.Settings, LogLevel: options.LogLevel,
		Listening: shared.Listening{Address: v.listenAddress, Port: v.shownPort, TLSPort: v.shownTLSPort, Change: v.changeBound},
	}
	if err := v.state.Settings.Start(); err != nil {
		return nil, err
	}
	v.scripts.Init(v.state)
	v.scripts.Libraries.Current() // so that what is wrong with one is in the log from the beginning
	v.state.Users = users.Users
	if err := users.Load(options.RequirePass); err != nil {
		return nil, err
	}
	v.options.RequirePass = "" // it is known by its hash from here on
	// After all that may be wrong, for it writes to the store.
	if err := v.joinGroup(); err != nil {
		return nil, err
	}
	// Last: it may begin a stream for replicas, which is attached to the store until a Serve has ended.
	if err := v.state.Following.Start(v.state, options.Config.Get("replicaof"), options.Config.IsSet("replicaof")); err != nil {
		return nil, err
	}
	return v, nil
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
	return v.options.Config.Get("tls-port")
}
