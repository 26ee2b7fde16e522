package cli

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
)

// A fakeServer answers each command with the reply of replies, or hangs up for "". It notes the commands.
type fakeServer struct {
	net.Listener
	replies func(command string) string
	asked   chan string
}

func newFakeServer(t *testing.T, replies func(command string) string) *fakeServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{l, replies, make(chan string, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return s
}

func (s *fakeServer) serve(conn net.Conn) {
	in := resp.NewDecoder(conn)
	for {
		r, err := in.Read()
		if err != nil {
			return
		}
		var words []string
		for _, item := range r.Items {
			words = append(words, string(item.Text))
		}
		command := strings.Join(words, " ")
		s.asked <- command
		reply := s.replies(command)
		if reply == "" {
			return
		}
		if _, err := conn.Write([]byte(reply)); err != nil {
			return
		}
	}
}

// log is what the server has been asked so far.
func (s *fakeServer) log() (commands []string) {
	for len(s.asked) > 0 {
		commands = append(commands, <-s.asked)
	}
	return commands
}

// collect runs one command and returns its replies as text.
func collect(ctx context.Context, b backend, line string) (replies []string, err error) {
	args, err := terminal.SplitLine([]byte(line))
	if err != nil {
		return nil, err
	}
	err = b.do(ctx, args, func(r resp.Reply) { replies = append(replies, string(terminal.AppendRaw(nil, r))) })
	return replies, err
}

func allOK(string) string { return "+OK\r\n" }

// A fresh connection identifies itself and sets its options before anything else.
func TestGreeting(t *testing.T) {
	tests := []struct {
		remote remote
		want   []string
	}{
		{remote{}, nil},
		{remote{db: 3}, []string{"SELECT 3"}},
		{remote{resp3: true}, []string{"HELLO 3"}},
		{remote{password: "p"}, []string{"AUTH p"}},
		{remote{user: "u", password: "p", db: 1}, []string{"AUTH u p", "SELECT 1"}},
		{remote{resp3: true, password: "p"}, []string{"HELLO 3 AUTH default p"}},
		{remote{resp3: true, user: "u", password: "p"}, []string{"HELLO 3 AUTH u p"}},
	}
	for _, test := range tests {
		s := newFakeServer(t, allOK)
		r := test.remote
		r.addr = s.Addr().String()
		if err := r.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.log(); !slices.Equal(got, test.want) {
			t.Errorf("%+v says %q", test.remote, got)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
}

// A server that refuses the greeting is not reached.
func TestGreetingRefused(t *testing.T) {
	s := newFakeServer(t, func(string) string { return "-WRONGPASS invalid\r\n" })
	r := &remote{addr: s.Addr().String(), password: "p"}
	err := r.connect(t.Context())
	if !isLost(err) || !strings.Contains(err.Error(), "WRONGPASS") || !strings.Contains(err.Error(), r.addr) || r.conn != nil {
		t.Errorf("%v", err)
	}
}

// A connection that breaks is made again by the next command, in the namespace that was selected.
func TestReconnect(t *testing.T) {
	s := newFakeServer(t, func(command string) string {
		if command == "BREAK" {
			return ""
		}
		return "+OK\r\n"
	})
	r := &remote{addr: s.Addr().String()}
	if _, err := collect(t.Context(), r, "PING"); err != nil {
		t.Fatal(err)
	}
	r.db = 7
	_, err := collect(t.Context(), r, "BREAK")
	if !isLost(err) || err.Error() != "the server closed the connection" {
		t.Errorf("%v", err)
	}
	if replies, err := collect(t.Context(), r, "PING"); err != nil || !slices.Equal(replies, []string{"OK"}) {
		t.Errorf("%q, %v", replies, err)
	}
	if got := s.log(); !slices.Equal(got, []string{"PING", "BREAK", "SELECT 7", "PING"}) {
		t.Errorf("%q", got)
	}
	r.close()
	s.Close()
	if _, err := collect(t.Context(), r, "PING"); !isLost(err) {
		t.Errorf("nobody listens: %v", err)
	}
	if err := r.close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// Which replies belong to a command: one, one a channel, or all until the context ends. Pushes in between count for none.
func TestReplies(t *testing.T) {
	push := func(words ...string) string {
		out := []byte(">" + string(rune('0'+len(words))) + "\r\n")
		for _, w := range words {
			out = append(out, "$"+string(rune('0'+len(w)))+"\r\n"+w+"\r\n"...)
		}
		return string(out)
	}
	s := newFakeServer(t, func(command string) string {
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
	r := &remote{addr: s.Addr().String()}
	defer r.close()
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
	s := newFakeServer(t, func(string) string { return "HTTP/1.1 400 Bad Request\r\n\r\n" })
	r := &remote{addr: s.Addr().String()}
	if _, err := collect(t.Context(), r, "PING"); !isLost(err) || r.conn != nil {
		t.Errorf("%v", err)
	}
}

// The prompt follows a server by its replies.
func TestTrack(t *testing.T) {
	queued := "+QUEUED\r\n"
	s := newFakeServer(t, func(command string) string {
		switch command {
		case "SELECT 99", "DISCARD alone", "INCR text":
			return "-ERR no\r\n"
		case "EXEC aborted":
			return "-EXECABORT no\r\n"
		case "EXEC watched":
			return "*-1\r\n"
		case "EXEC":
			return "*0\r\n"
		case "SELECT 4":
			return queued
		}
		return "+OK\r\n"
	})
	steps := []struct{ line, prompt string }{
		{"SELECT 3", "s[3]> "},
		{"SELECT 99", "s[3]> "},
		{"MULTI", "s[3](TX)> "},
		{"SELECT 4", "s[4](TX)> "},
		{"DISCARD", "s[3]> "},
		{"MULTI", "s[3](TX)> "},
		{"SELECT 4", "s[4](TX)> "},
		{"EXEC watched", "s[3]> "},
		{"MULTI", "s[3](TX)> "},
		{"EXEC aborted", "s[3]> "},
		{"MULTI", "s[3](TX)> "},
		{"SELECT 4", "s[4](TX)> "},
		{"EXEC", "s[4]> "},
		{"INCR text", "s[4]> "},
		{"MULTI", "s[4](TX)> "},
		{"RESET", "s[0]> "},
	}
	r := &remote{addr: s.Addr().String()}
	defer r.close()
	c := &session{Streams: terminal.Open(nil, nil, nil), backend: r, name: "s"}
	for _, step := range steps {
		err := c.runLine(t.Context(), &strings.Builder{}, []byte(step.line))
		if c.prompt() != step.prompt || r.db != c.db {
			t.Errorf("after %s (%v): %s, db %d of the connection", step.line, err, c.prompt(), r.db)
		}
	}
	if err := c.runLine(t.Context(), &strings.Builder{}, []byte("QUIT")); err != nil || !c.closed {
		t.Errorf("QUIT: %v", err)
	}
}
