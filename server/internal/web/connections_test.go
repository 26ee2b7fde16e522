package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// counting counts the connections that are open.
type counting struct {
	net.Listener
	open, most atomic.Int64
}

type counted struct {
	net.Conn
	of     *counting
	closed atomic.Bool
}

func (l *counting) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if n := l.open.Add(1); n > l.most.Load() {
		l.most.Store(n)
	}
	return &counted{Conn: nc, of: l}, nil
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.of.open.Add(-1)
	}
	return c.Conn.Close()
}

// listen serves pages by an endpoint until the test ends.
func listen(t *testing.T, page http.HandlerFunc) *counting {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &counting{Listener: ln}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	e := Endpoint{Metrics: func() string { return "figures" }, Dashboard: page, Logger: slog.New(slog.DiscardHandler)}
	go func() { done <- e.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

// ask sends a request over a connection and reads the reply; the connection stays open.
func ask(nc net.Conn, path string) (string, error) {
	_ = nc.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(nc, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return "", err
	}
	r, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r.Body)
	return string(text), errors.Join(err, r.Body.Close())
}

// TestConnectionsAreFew: whoever opens connections and keeps them, silent, with half a request or after a whole one,
// takes few descriptors; the newest is served all the same, and a request that runs is not cut off.
func TestConnectionsAreFew(t *testing.T) {
	running, release := make(chan struct{}, 1), make(chan struct{})
	l := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		running <- struct{}{}
		<-release
		_, _ = io.WriteString(w, "the page")
	})
	open := func() net.Conn {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		return nc
	}
	page := make(chan string, 1)
	slow := open()
	go func() {
		text, err := ask(slow, "/")
		if err != nil {
			text = err.Error()
		}
		page <- text
	}()
	<-running
	for i := range 5 * MaxConnections {
		nc := open()
		switch i % 3 {
		case 1:
			_, _ = io.WriteString(nc, "GET /metrics HTTP/1.1\r\n")
		case 2:
			if text, err := ask(nc, "/metrics"); err != nil || text != "figures" {
				t.Fatalf("connection %d: %q, %v", i, text, err)
			}
		}
	}
	if text, err := ask(open(), "/metrics"); err != nil || text != "figures" {
		t.Errorf("the newest: %q, %v", text, err)
	}
	close(release)
	if got := <-page; got != "the page" {
		t.Errorf("the request that ran: %q", got)
	}
	if most := l.most.Load(); most > MaxConnections+1 { // one more until another has gone
		t.Errorf("%d connections at a time", most)
	}
}

// TestAcceptFails: an error of the system does not end the endpoint.
func TestAcceptFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	failing := &failing{Listener: ln}
	e := Endpoint{Metrics: func() string { return "figures" }, Dashboard: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, failing) }()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if text, err := ask(nc, "/metrics"); err != nil || text != "figures" {
		t.Errorf("%q, %v", text, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// failing fails once.
type failing struct {
	net.Listener
	failed bool
}

func (l *failing) Accept() (net.Conn, error) {
	if !l.failed {
		l.failed = true
		return nil, errors.New("no buffer space available")
	}
	return l.Listener.Accept()
}
