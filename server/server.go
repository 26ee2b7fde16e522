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

// Server is what the sessions on one store share: settings, counters, the list of clients. Its methods are safe for
// concurrent use.
type Server struct {
	store   *db.Store
	options Options
	runID   string
	started time.Time

	nextID   atomic.Int64
	commands []commandStats // by Command.index
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

// counters are the sums that INFO shows.
type counters struct {
	connections atomic.Int64 // accepted since the start
	rejected    atomic.Int64 // refused because of MaxClients
	evicted     atomic.Int64 // closed because of ClientMemory
	flooded     atomic.Int64 // closed because they did not take what was published for them
	hits        atomic.Int64 // reads that found something
	misses      atomic.Int64 // reads that found nothing
	panics      atomic.Int64 // commands that panicked
	errors      atomic.Int64 // error replies
	in, out     atomic.Int64 // bytes from and to clients
	reads       atomic.Int64 // read(2) calls that brought something
	writes      atomic.Int64 // write(2) calls
	clientBytes atomic.Int64 // bytes behind the buffers of all clients
	blocked     atomic.Int64 // clients that wait in a command
}

// commandStats counts one command.
type commandStats struct {
	calls, nanoseconds, rejected, failed atomic.Int64
}

// New returns a server on store. It starts nothing: Serve and NewSession do.
func New(store *db.Store, o *Options) *Server {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	v := &Server{
		store:    store,
		options:  o.withDefaults(),
		runID:    hex.EncodeToString(id[:]),
		started:  time.Now(),
		commands: make([]commandStats, table.Size),
		clients:  make(map[int64]*Session),
		errors:   make(map[string]int64),
	}
	v.tunables.init(&v.options)
	return v
}

// maxErrorCodes bounds the map of error codes: a client can make up codes only where a command repeats its arguments,
// which none does at the start of an error, but a bound costs nothing.
const maxErrorCodes = 128

// countError counts an error reply by its code.
func (v *Server) countError(text string) {
	v.counters.errors.Add(1)
	code := text
	for i := 0; i < len(code); i++ {
		if code[i] == ' ' {
			code = code[:i]
			break
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.errors[code]; known || len(v.errors) < maxErrorCodes {
		v.errors[code]++
	}
}

func (v *Server) register(s *Session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clients[s.id] = s
}

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

// sessions returns the connected sessions by ascending id.
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

// rate returns the commands executed a second, over the last interval of at least a second that ended with a call.
func (v *Server) rate() int64 {
	v.rateMu.Lock()
	defer v.rateMu.Unlock()
	now, count := time.Now(), v.executed()
	if passed := now.Sub(v.rateSince); passed >= time.Second {
		v.rateLast = int64(float64(count-v.rateCount) / passed.Seconds())
		v.rateSince, v.rateCount = now, count
	}
	return v.rateLast
}

// resetStats sets the counters of INFO to zero, except those that describe the present.
func (v *Server) resetStats() {
	c := &v.counters
	for _, n := range []*atomic.Int64{
		&c.connections, &c.rejected, &c.evicted, &c.flooded, &c.hits, &c.misses, &c.panics, &c.errors, &c.in, &c.out, &c.reads, &c.writes,
	} {
		n.Store(0)
	}
	for i := range v.commands {
		s := &v.commands[i]
		s.calls.Store(0)
		s.nanoseconds.Store(0)
		s.rejected.Store(0)
		s.failed.Store(0)
	}
	v.mu.Lock()
	clear(v.errors)
	v.mu.Unlock()
	v.rateMu.Lock()
	v.rateSince, v.rateCount = time.Now(), 0
	v.rateMu.Unlock()
}

// listenAddress returns host and port of the listener, or "" and "0" without one on TCP.
func (v *Server) listenAddress() (host, port string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if tcp, ok := v.address.(*net.TCPAddr); ok {
		return tcp.IP.String(), strconv.Itoa(tcp.Port)
	}
	return "", "0"
}

// databases is how many namespaces SELECT reaches.
func (v *Server) databases() int {
	if n := v.options.Databases; n > 0 {
		return min(n, v.store.Namespaces())
	}
	return v.store.Namespaces()
}
