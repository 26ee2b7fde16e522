package server

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
)

// Server is what the sessions on one store share: settings, counters, the list of clients. Its
// methods are safe for concurrent use.
type Server struct {
	store   *db.Store
	options Options
	pauseAt int // bytes of replies that pause a session
	runID   string
	started time.Time

	nextID   atomic.Int64
	commands []commandStats // by command.Command.Index
	counters counters
	tunables tunables
	hub      hub
	notifier notifier
	slowLog  slowLog

	mu      sync.Mutex         // guards clients and errors
	clients map[int64]*Session // connected, by id
	errors  map[string]int64   // error replies by code
	address net.Addr           // of the listener, once Serve has one

	rateMu    sync.Mutex // guards the three below
	rateSince time.Time  // start of the interval that rate measures
	rateCount int64      // commands before it
	rateLast  int64      // commands a second in the interval before
}

// New returns a server on store. It starts nothing: Serve and NewSession do. o may be nil; a value
// in it that makes no sense is an error that names the field.
func New(store *db.Store, o *Options) (*Server, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	v := &Server{
		store:    store,
		options:  options,
		pauseAt:  defaultPauseOutput,
		runID:    hex.EncodeToString(id[:]),
		started:  time.Now(),
		commands: make([]commandStats, table.Size),
		clients:  make(map[int64]*Session),
		errors:   make(map[string]int64),
	}
	v.tunables.init(&v.options)
	return v, nil
}

// register makes a session visible to CLIENT LIST and CLIENT KILL.
func (v *Server) register(s *Session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clients[s.id] = s
}

// unregister is its inverse. It may be called twice.
func (v *Server) unregister(s *Session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.clients, s.id)
}

// session returns the connected session of that id, nil if there is none.
func (v *Server) session(id int64) *Session {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.clients[id]
}

// sessions returns the connected sessions by ascending id. It is a copy: the sessions run on, and
// some may end before the caller has read the list.
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

// listenAddress returns host and port of the listener, or "" and "0" without one on TCP. Tools
// print it; a Unix socket has neither.
func (v *Server) listenAddress() (host, port string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if tcp, ok := v.address.(*net.TCPAddr); ok {
		return tcp.IP.String(), strconv.Itoa(tcp.Port)
	}
	return "", "0"
}

// databases is how many namespaces SELECT reaches. A number beyond the store's is reduced to it, so
// SELECT cannot choose a namespace that the store lacks.
func (v *Server) databases() int {
	if n := v.options.Databases; n > 0 {
		return min(n, v.store.Namespaces())
	}
	return v.store.Namespaces()
}
