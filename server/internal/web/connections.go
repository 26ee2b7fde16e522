package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// MaxConnections is how many connections there are at a time. One more ends the one that has been quiet for longest, so
// that whoever keeps connections open takes neither descriptors of the store nor the place of a probe. It is more than
// the requests that run at a time: one of the others can always go.
const MaxConnections = 32

// connections are those that are open.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]*connection
}

// connection is what is known of one.
type connection struct {
	used time.Time // when its state last changed
	busy bool      // its request runs
}

// connectionKey is where the context of a request has its *connection.
type connectionKey struct{}

// changed notes the states of connections; it is the ConnState of a http.Server, which calls it for a new one before it
// accepts the next.
func (s *connections) changed(nc net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(s.open, nc)
	default:
		if c := s.open[nc]; c != nil {
			c.used = time.Now()
		}
	}
}

// enter adds a connection, in the place of another if need be, and gives the contexts of its requests what busy needs.
// It is the ConnContext of a http.Server.
func (s *connections) enter(ctx context.Context, nc net.Conn) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= MaxConnections {
		quiet := nc // if all others are busy
		used := time.Now()
		for other, c := range s.open {
			if !c.busy && !c.used.After(used) {
				quiet, used = other, c.used
			}
		}
		delete(s.open, quiet)
		_ = quiet.Close() // its client sees what the end of the idle time would show it a little later
	}
	c := &connection{used: time.Now()}
	s.open[nc] = c
	return context.WithValue(ctx, connectionKey{}, c)
}

// busy notes whether the request of that context runs.
func (s *connections) busy(ctx context.Context, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, known := ctx.Value(connectionKey{}).(*connection); known {
		c.busy, c.used = is, time.Now()
	}
}
