package listeners_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stavedb/stave/server/internal/listeners"
	"github.com/stavedb/stave/server/internal/socket"
)

// served is a set whose sockets are noted as they are started.
type served struct {
	*listeners.Set
	started []listeners.Listener
	refusal error
}

// serve opens and starts a set.
func serve(t *testing.T, place listeners.Place) *served {
	t.Helper()
	set, err := listeners.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	s := &served{Set: set}
	begun := false
	set.Start(func() { begun = true }, func(l listeners.Listener) {
		if !begun {
			t.Error("started before the set was known")
		}
		s.started = append(s.started, l)
	})
	t.Cleanup(func() {
		set.Stop()
		for _, l := range s.started {
			_ = l.Close() // some are closed
		}
	})
	return s
}

// change is Change by rules that allow what refusal does not refuse.
func (s *served) change(values listeners.Values) error {
	return s.Change(values, &listeners.Rules{
		Judge:   func(context.Context, socket.Address) (refusal, err error) { return s.refusal, nil },
		Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
}

// answers says whether somebody listens.
func answers(port string) bool {
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// TestReopen: a socket that was closed for a new one is open again, and started, when another new one fails; what is
// shown is as before.
func TestReopen(t *testing.T) {
	s := serve(t, listeners.Place{HostPort: "0.0.0.0:0"})
	port := s.Place().Port
	if err := s.change(listeners.Values{"bind": "127.0.0.1"}); err != nil {
		t.Fatal(err) // 127.0.0.1 can be opened only after 0.0.0.0 is closed
	}
	if !s.started[0].IsRetired() || len(s.started) != 2 || !answers(port) {
		t.Fatalf("%d started, first retired: %v", len(s.started), s.started[0].IsRetired())
	}
	if err := s.change(listeners.Values{"bind": "0.0.0.0"}); err != nil {
		t.Fatal(err)
	}
	if err := s.change(listeners.Values{"bind": "127.0.0.1 192.0.2.1"}); err == nil {
		t.Fatal("an address of no machine was opened")
	}
	if p := s.Place(); p.Bind != "0.0.0.0" || p.Port != port {
		t.Errorf("shown: %+v", p)
	}
	if len(s.started) != 4 || !s.started[2].IsRetired() || s.started[3].IsRetired() || s.started[3].HostPort != "0.0.0.0:"+port || !answers(port) {
		t.Errorf("%d started, answers: %v", len(s.started), answers(port))
	}
}

// TestRefused: what is refused changes nothing, and so does everything after Stop.
func TestRefused(t *testing.T) {
	s := serve(t, listeners.Place{HostPort: "127.0.0.1:0", Bind: "127.0.0.1"})
	before := s.Place()
	s.refusal = errors.New("no")
	if err := s.change(listeners.Values{"bind": "127.0.0.2"}); err != s.refusal {
		t.Error(err)
	}
	if err := s.change(listeners.Values{"bind": "127.0.0.1"}); err != nil {
		t.Errorf("nothing changes: %v", err)
	}
	s.refusal = nil
	if err := s.change(listeners.Values{"tls-port": "1"}); err == nil {
		t.Error("a port for TLS without a certificate")
	}
	s.Stop()
	if err := s.change(listeners.Values{"bind": "127.0.0.2"}); err == nil {
		t.Error("changed after Stop")
	}
	if s.Place() != before || len(s.started) != 1 || len(s.Addrs()) != 1 {
		t.Errorf("%+v, %v", s.Place(), s.Addrs())
	}
}
