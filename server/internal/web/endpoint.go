package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/internal/redact"
	"github.com/stavedb/stave/server/internal/socket"
)

// Limits, for a few scrapers.
const (
	requests     = 8       // for figures at a time; one more gets 503
	pages        = 8       // for the dashboard at a time: they may wait for locks, and scrapers and probes do not wait for them
	headerBytes  = 8 << 10 // of a request
	readTimeout  = 5 * time.Second
	writeTimeout = 10 * time.Second
	idleTimeout  = 30 * time.Second // more than most scrapers let pass
)

// figurePaths are what scrapers and probes ask for.
var figurePaths = []string{"/metrics", "/healthz", "/readyz"}

// Endpoint is what is served.
type Endpoint struct {
	Store     *db.Store
	Metrics   func() string
	Dashboard http.Handler
	Logger    *slog.Logger
}

// Serve answers until ctx ends, or ln is closed. It closes ln.
func (e *Endpoint) Serve(ctx context.Context, ln net.Listener) error {
	open := connections{open: map[net.Conn]*connection{}}
	s := &http.Server{
		Handler:     e.guard(&open),
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		ConnState: open.changed, ConnContext: open.enter,
		ErrorLog: slog.NewLogLogger(e.Logger.Handler(), slog.LevelWarn),
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // a scrape that is cut off is repeated
	defer stop()
	err := s.Serve(socket.Steady(ctx, ln, e.Logger))
	_ = s.Close()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// guard refuses what comes from elsewhere, or is too much at a time.
func (e *Endpoint) guard(open *connections) http.Handler {
	figures, pages := make(chan struct{}, requests), make(chan struct{}, pages)
	inner := e.handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocalHost(r.Host) {
			http.Error(w, "this endpoint is for its own machine", http.StatusForbidden)
			return
		}
		free := pages
		if slices.Contains(figurePaths, r.URL.Path) {
			free = figures
		}
		select {
		case free <- struct{}{}:
			open.busy(r.Context(), true)
			defer func() {
				open.busy(r.Context(), false)
				<-free
			}()
			inner.ServeHTTP(w, r)
		default:
			http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
		}
	})
}

// handler answers what is not refused.
func (e *Endpoint) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", e.Dashboard)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write([]byte(e.Metrics())) // whoever asked has gone if it fails
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "ok, the store is %s\n", e.Store.Stats().State)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		text, ready := e.readiness()
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprintln(w, text)
	})
	return mux
}

// readiness reports whether the server does what it is for: takes writes, or shows what another process writes.
func (e *Endpoint) readiness() (text string, ready bool) {
	if f := e.Store.FollowState(); f.Err != nil && !errors.Is(f.Err, db.ErrNotFollowing) {
		return fmt.Sprintf("the store has not followed its writer since %s: %s", f.Since.UTC().Format(time.RFC3339), redact.Error(f.Err, "")), false
	}
	state := e.Store.Stats().State
	return fmt.Sprintf("the store is %s", state), state == db.StateOK
}

// isLocalHost says whether a request is for a name of this machine. Whoever asks by an IP address has not been
// led here by a name that somebody else chose.
func isLocalHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(host) != nil || net.ParseIP(trimBrackets(host)) != nil
}

func trimBrackets(host string) string {
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}
