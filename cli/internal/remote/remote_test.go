package remote

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/fakeserver"
)

// collect runs one command and returns its replies as text.
func collect(ctx context.Context, b *Conn, line string) (replies []string, err error) {
	args, err := terminal.SplitLine([]byte(line))
	if err != nil {
		return nil, err
	}
	err = b.Do(ctx, args, func(r resp.Reply) { replies = append(replies, string(terminal.AppendRaw(nil, r))) })
	return replies, err
}

func allOK(string) string { return "+OK\r\n" }

// A fresh connection identifies itself and sets its options before anything else.
func TestGreeting(t *testing.T) {
	tests := []struct {
		conn Conn
		want []string
	}{
		{Conn{}, nil},
		{Conn{DB: 3}, []string{"SELECT 3"}},
		{Conn{RESP3: true}, []string{"HELLO 3"}},
		{Conn{Password: "p"}, []string{"AUTH p"}},
		{Conn{User: "u", Password: "p", DB: 1}, []string{"AUTH u p", "SELECT 1"}},
		{Conn{RESP3: true, Password: "p"}, []string{"HELLO 3 AUTH default p"}},
		{Conn{RESP3: true, User: "u", Password: "p"}, []string{"HELLO 3 AUTH u p"}},
	}
	for _, test := range tests {
		s := fakeserver.New(t, allOK)
		r := test.conn
		r.Addr = s.Addr().String()
		if err := r.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.Asked(); !slices.Equal(got, test.want) {
			t.Errorf("%+v says %q", test.conn, got)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A server that refuses the greeting is not reached.
func TestGreetingRefused(t *testing.T) {
	s := fakeserver.New(t, func(string) string { return "-WRONGPASS invalid\r\n" })
	r := &Conn{Addr: s.Addr().String(), Password: "p"}
	err := r.Connect(t.Context())
	if !IsLost(err) || !strings.Contains(err.Error(), "WRONGPASS") || !strings.Contains(err.Error(), r.Addr) || r.conn != nil {
		t.Errorf("%v", err)
	}
}

// A connection that breaks is made again by the next command, in the namespace that was selected.
func TestReconnect(t *testing.T) {
	s := fakeserver.New(t, func(command string) string {
		if command == "BREAK" {
			return ""
		}
		return "+OK\r\n"
	})
	r := &Conn{Addr: s.Addr().String()}
	if _, err := collect(t.Context(), r, "PING"); err != nil {
		t.Fatal(err)
	}
	r.DB = 7
	_, err := collect(t.Context(), r, "BREAK")
	if !IsLost(err) || err.Error() != "the server closed the connection" {
		t.Errorf("%v", err)
	}
	if replies, err := collect(t.Context(), r, "PING"); err != nil || !slices.Equal(replies, []string{"OK"}) {
		t.Errorf("%q, %v", replies, err)
	}
	if got := s.Asked(); !slices.Equal(got, []string{"PING", "BREAK", "SELECT 7", "PING"}) {
		t.Errorf("%q", got)
	}
	r.Close()
	s.Close()
	if _, err := collect(t.Context(), r, "PING"); !IsLost(err) {
		t.Errorf("nobody listens: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// Which replies belong to a command: one, one a channel, or all until the context ends. Pushes in between count for
// none.
func TestReplies(t *testing.T) {
	push := func(words ...string) string {
		out := []byte(">" + string(rune('0'+len(words))) + "\r\n")
		for _, w := range words {
			out = append(out, "$"+string(rune('0'+len(w)))+"\r\n"+w+"\r\n"...)
		}
		return string(out)
	}
	s := fakeserver.New(t, func(command string) string {
		switch command {
		case "GET k":
			return push("message", "c", "m") + "$1\r\nv\r\n"
		case "UNSUBSCRIBE a b":
			return push("unsub", "a") + push("unsub", "b")
		case "UNSUBSCRIBE":
			return push("unsub", "")
		case "SUBSCRIBE a", "MONITOR":
			return push("sub", "a") + push("message", "a", "m")
		case "SUBSCRIBE b":
			return "-ERR no\r\n"
		case "QUIT", "SHUTDOWN":
			return ""
		}
		return "+OK\r\n"
	})
	r := &Conn{Addr: s.Addr().String()}
	defer r.Close()
	for line, want := range map[string][]string{
		"GET k":           {"message\nc\nm", "v"},
		"UNSUBSCRIBE a b": {"unsub\na", "unsub\nb"},
		"UNSUBSCRIBE":     {"unsub\n"},
		"SUBSCRIBE b":     {"ERR no"},
		"QUIT":            nil,
		"SHUTDOWN":        nil,
	} {
		if got, err := collect(t.Context(), r, line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
	for _, line := range []string{"SUBSCRIBE a", "MONITOR"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // what is pushed comes at once
		got, err := collect(ctx, r, line)
		if !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(got, []string{"sub\na", "message\na\nm"}) || r.conn != nil {
			t.Errorf("%s: %q, %v", line, got, err)
		}
		cancel()
	}
}

// Bytes outside the protocol end the connection, too.
func TestGibberish(t *testing.T) {
	s := fakeserver.New(t, func(string) string { return "HTTP/1.1 400 Bad Request\r\n\r\n" })
	r := &Conn{Addr: s.Addr().String()}
	if _, err := collect(t.Context(), r, "PING"); !IsLost(err) || r.conn != nil {
		t.Errorf("%v", err)
	}
}
