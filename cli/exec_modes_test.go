package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/fakeserver"
)

// piped runs an input with --pipe on a session, and returns what is printed.
func piped(t *testing.T, s *session, in io.Reader, keepGoing bool) (stdout, stderr string, err error) {
	t.Helper()
	var out, complaints bytes.Buffer
	s.Streams = terminal.Open(nil, &out, &complaints)
	err = s.runPipe(t.Context(), in, keepGoing)
	return out.String(), complaints.String(), err
}

// Commands as clients send them and as lines, of any bytes and split anywhere, reach a store and a server alike; a byte
// in an error is the one at which the command begins.
func TestPipeInput(t *testing.T) {
	random := chance.Rand(t)
	var input []byte
	bad := 0
	for i := range 300 {
		switch value := strings.Repeat("v\r\n\x00", random.IntN(20)); i {
		case 200:
			input = append(input, "# a comment\n\r\n*0\r\n"...)
			bad = len(input)
			input = resp.AppendCommandStrings(input, "LPUSH", "k1", "x")
		default:
			if random.IntN(2) == 0 {
				input = fmt.Appendf(input, "SET k%d %q\n", i, strings.ReplaceAll(value, "\x00", "0"))
			} else {
				input = resp.AppendCommandStrings(input, "SET", fmt.Sprintf("k%d", i), value)
			}
		}
	}
	input = append(input, "SET last line"...)
	for name, in := range map[string]io.Reader{"whole": bytes.NewReader(input), "by bytes": iotest.OneByteReader(bytes.NewReader(input)), "by halves": iotest.HalfReader(bytes.NewReader(input))} {
		s, _ := newTestSession(t, terminal.Raw)
		stdout, stderr, err := piped(t, s, in, true)
		if want := fmt.Sprintf("stave: byte %d: \"LPUSH k1\": WRONGTYPE Operation against a key holding the wrong kind of value\n", bad); stdout != "errors: 1, replies: 301\n" || stderr != want || err == nil {
			t.Errorf("%s: %s%s%v", name, stdout, stderr, err)
		}
		for key, want := range map[string]int64{"DBSIZE": 300, "STRLEN last": 4} {
			if r, err := s.query(t.Context(), strings.Fields(key)...); err != nil || r.Int != want {
				t.Errorf("%s: %s is %d, %v", name, key, r.Int, err)
			}
		}
	}
}

// On a server commands are sent together. The first error ends it without keepGoing, after what was sent with it.
func TestPipeServer(t *testing.T) {
	server := fakeserver.New(t, func(command string) string {
		switch {
		case strings.HasPrefix(command, "BAD"):
			return "-ERR bad\r\n"
		case command == "HANG":
			return ""
		}
		return "+OK\r\n"
	})
	onServer := func(in io.Reader, keepGoing bool) (stdout, stderr string, err error) {
		s := &session{backend: &remote.Conn{Addr: server.Addr().String()}}
		defer s.backend.Close() // the server has one client at a time
		return piped(t, s, in, keepGoing)
	}
	stdout, stderr, err := onServer(strings.NewReader("A\nB\n"), false)
	if stdout != "errors: 0, replies: 2\n" || stderr != "" || err != nil {
		t.Errorf("%s%s%v", stdout, stderr, err)
	}
	if got := strings.Join(server.Asked(), ","); got != "A,B" {
		t.Error(got)
	}
	later := io.MultiReader(strings.NewReader("A\nBAD 1\nBAD 2\nC\n"), strings.NewReader("D\n"))
	stdout, stderr, err = onServer(later, false)
	if exit, ok := errors.AsType[*exitError](err); !ok || exit.status != exitCommand || stdout != "errors: 2, replies: 4\n" ||
		stderr != "stave: byte 2: \"BAD 1\": ERR bad\nstave: byte 8: \"BAD 2\": ERR bad\n" {
		t.Errorf("%s%s%v", stdout, stderr, err)
	}
	if got := strings.Join(server.Asked(), ","); got != "A,BAD 1,BAD 2,C" {
		t.Error(got)
	}
	// A lost connection names the command that had no reply.
	stdout, stderr, err = onServer(strings.NewReader("A\nHANG x\nHANG\n"), true)
	if !remote.IsLost(err) || !strings.Contains(err.Error(), `byte 9: "HANG": no reply`) || !strings.HasSuffix(err.Error(), "; 2 commands run before it") || stdout != "" {
		t.Errorf("%s%s%v", stdout, stderr, err)
	}
	server.Asked()
	server.Close()
	if _, _, err = onServer(strings.NewReader("A\n"), true); !remote.IsLost(err) {
		t.Errorf("nobody listens: %v", err)
	}
}

// An interrupt ends the wait for an input that does not come; one that breaks is an error.
func TestPipeEnds(t *testing.T) {
	s, _ := newTestSession(t, terminal.Raw)
	waiting, hold := io.Pipe()
	defer hold.Close()
	var complaints bytes.Buffer
	s.Streams = terminal.Open(nil, io.Discard, &complaints)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		hold.Write([]byte("SET a 1\n"))
		for s.backend.(*embedded).store.Stats().Keys == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if err := s.runPipe(ctx, waiting, false); !errors.Is(err, context.Canceled) || complaints.String() != "stave: interrupted; 1 command run\n" {
		t.Errorf("%v, %s", err, complaints.String())
	}
	if _, _, err := piped(t, s, io.MultiReader(strings.NewReader("SET b 2\n"), brokenReader{}), true); err == nil || !strings.Contains(err.Error(), "stdin: hung up") {
		t.Errorf("%v", err)
	}
}
