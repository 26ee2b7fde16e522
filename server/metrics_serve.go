package server

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
)

// Limits of the HTTP endpoint, which is for a few scrapers.
const (
	httpRequests     = 8       // for figures at a time; one more gets 503
	httpPages        = 8       // for the dashboard at a time: they may wait for locks, and scrapers and probes do not wait for them
	httpHeaderBytes  = 8 << 10 // of a request
	httpReadTimeout  = 5 * time.Second
	httpWriteTimeout = 10 * time.Second
	httpIdleTimeout  = 2 * time.Minute
)

// figurePaths are what scrapers and probes ask for.
var figurePaths = []string{"/metrics", "/healthz", "/readyz"}

// ErrHTTPExposed is returned by ServeHTTP for a listener that other machines can reach: whoever can connect reads
// the figures.
var ErrHTTPExposed = errors.New("server: refusing to serve /metrics on an address that other machines can reach: it has no authentication; " +
	"bind 127.0.0.1 or ::1, and put a proxy in front")

// ServeHTTP answers GET / (a dashboard), /metrics (all figures, in the text format of Prometheus), /healthz (200 while the process
// answers) and /readyz (200 while the store takes writes, or follows the process that does, 503 otherwise) until ctx ends. It closes ln. Like Serve it
// refuses an address that other machines can reach: only the dashboard asks for a password, and that in the clear. A request
// for another host name than that of this machine is refused, so that no web page can read the figures through a browser.
func (v *Server) ServeHTTP(ctx context.Context, ln net.Listener) error {
	if !isLocal(ln.Addr()) {
		return errors.Join(fmt.Errorf("http: %s: %w", ln.Addr(), ErrHTTPExposed), ln.Close())
	}
	figures, pages := make(chan struct{}, httpRequests), make(chan struct{}, httpPages)
	inner := v.httpHandler()
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
				defer func() { <-free }()
				inner.ServeHTTP(w, r)
			default:
				http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
			}
		}),
		ReadTimeout: httpReadTimeout, WriteTimeout: httpWriteTimeout, IdleTimeout: httpIdleTimeout, MaxHeaderBytes: httpHeaderBytes,
		ErrorLog: slog.NewLogLogger(v.options.Logger.Handler(), slog.LevelWarn),
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // a scrape that is cut off is repeated
	defer stop()
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
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
