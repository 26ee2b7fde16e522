package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/cli/internal/history"
	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
)

func init() {
	if os.Getenv("STAVE_TEST_AS_PROGRAM") != "" { // A machine that is busy changes no screen.
		slow = time.Hour
	}
}

// converse has a dumb terminal's shell read the lines, and returns the screen then.
func converse(t *testing.T, lines string) string {
	t.Helper()
	t.Setenv("TERM", "dumb")
	t.Setenv("STAVE_HISTFILE", "")
	s, out := newTestSession(t, terminal.Typed)
	s.name = "store"
	s.In = strings.NewReader(lines)
	if err := s.interact(shellOptions{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A conversation: prompts, replies, errors among them, and the end.
func TestConversation(t *testing.T) {
	got := converse(t, `set a 1
lpush a x

# a comment
get "a
select 3
multi
incr n
help nothing
exec
3 incr n
0 incr n
99999999999999999999 incr n
exit now
exit
set never 1
`)
	want := `stave ` + version + `. HELP explains, Ctrl-D leaves.
store[0]> OK
store[0]> (error) WRONGTYPE Operation against a key holding the wrong kind of value
store[0]> store[0]> store[0]> Invalid argument(s): unbalanced quotes
store[0]> OK
store[3]> OK
store[3](TX)> QUEUED
store[3](TX)> no command "nothing" (HELP lists the groups)
store[3](TX)> 1) (integer) 1
store[3]> (integer) 2
(integer) 3
(integer) 4
store[3]> (error) ERR unknown command '0', with args beginning with: 'incr' 'n' 
store[3]> (error) ERR unknown command '99999999999999999999', with args beginning with: 'incr' 'n' 
store[3]> (error) ERR unknown command 'exit', with args beginning with: 'now' 
store[3]> `
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestPreferencesOfAFile: the shell begins with what the file of settings has for :set, and says what is wrong with
// that file.
func TestPreferencesOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	t.Setenv("STAVE_CLIENT_CONFIG", path)
	for text, prints := range map[string]string{
		"set json\n":       "> \"PONG\"\n",
		"set  nonsense\n":  ":set knows ",
		"connection one\n": "> PONG\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := converse(t, "ping\n"); !strings.Contains(got, prints) {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// The end of the input leaves the shell; so does QUIT. CLEAR and HELP are the shell's own.
func TestLeaving(t *testing.T) {
	if got := converse(t, "ping"); !strings.HasSuffix(got, "> PONG\nstore[0]> \n") {
		t.Errorf("end of input: %q", got)
	}
	if got := converse(t, "quit\nping\n"); strings.Contains(got, "PONG") {
		t.Errorf("QUIT: %q", got)
	}
	if got := converse(t, "clear\n"); !strings.Contains(got, "> \x1b[H\x1b[2J") {
		t.Errorf("CLEAR: %q", got)
	}
	if got := converse(t, "clear all\n"); !strings.Contains(got, "unknown command 'clear'") {
		t.Errorf("CLEAR all: %q", got)
	}
	if got := converse(t, "help get\n"); !strings.Contains(got, "> "+"  GET key\n") {
		t.Errorf("HELP: %q", got)
	}
}

// A terminal that breaks is an error, not the end of the input.
func TestBrokenTerminal(t *testing.T) {
	t.Setenv("TERM", "dumb")
	t.Setenv("STAVE_HISTFILE", "")
	s, _ := newTestSession(t, terminal.Typed)
	s.In = io.MultiReader(strings.NewReader("ping\n"), brokenReader{})
	err := s.interact(shellOptions{quiet: true})
	if exit, ok := errors.AsType[*exitError](err); !ok || exit.status != exitCommand || !strings.Contains(err.Error(), "read: ") {
		t.Errorf("%v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("hung up") }

// A scripted backend answers with prepared replies.
type scripted struct {
	replies []resp.Reply
	err     error
	delay   time.Duration
	asked   []string
}

func (b *scripted) Do(ctx context.Context, args [][]byte, reply func(resp.Reply)) error {
	b.asked = append(b.asked, string(bytes.Join(args, []byte(" "))))
	time.Sleep(b.delay)
	for _, r := range b.replies {
		reply(r)
	}
	return b.err
}

func (b *scripted) Close() error { return nil }

// What the shell says when a command has no outcome, and that it then does not repeat it.
func TestCommandsWithoutOutcome(t *testing.T) {
	ok := resp.Reply{Kind: resp.SimpleString, Text: []byte("OK")}
	tests := []struct {
		name, line string
		backend    scripted
		want       string
		asked      int
	}{
		{"lost", "3 ping", scripted{err: &remote.LostError{Err: errors.New("reset by peer")}}, "Error: reset by peer\n", 1},
		{"interrupted", "ping", scripted{err: context.Canceled}, "(interrupted; whether the command took effect is not known)\n", 1},
		{"stopped listening", "subscribe a", scripted{err: context.Canceled}, "Reading messages... (press Ctrl-C to stop)\n\n", 1},
		{"monitor", "monitor", scripted{replies: []resp.Reply{ok}, err: context.Canceled}, "Reading messages... (press Ctrl-C to stop)\nOK\n\n", 1},
		{"repeated", "3 ping", scripted{replies: []resp.Reply{ok}}, "OK\nOK\nOK\n", 3},
		{"subscribe to nothing", "subscribe", scripted{replies: []resp.Reply{ok}}, "OK\n", 1},
	}
	for _, test := range tests {
		var out bytes.Buffer
		s := &session{Streams: terminal.Open(nil, &out, nil), backend: &test.backend}
		s.runTyped([]byte(test.line))
		if out.String() != test.want || len(test.backend.asked) != test.asked {
			t.Errorf("%s: %q, asked %q", test.name, out.String(), test.backend.asked)
		}
	}
}

// Slow commands are timed, but not for programs.
func TestSlowCommand(t *testing.T) {
	for f, want := range map[terminal.Format]bool{terminal.Typed: true, terminal.Raw: false, terminal.JSON: false} {
		var out bytes.Buffer
		b := &scripted{replies: []resp.Reply{{Kind: resp.Integer, Int: 1}}, delay: slow}
		s := &session{Streams: terminal.Open(nil, &out, nil), backend: b, printer: terminal.Printer{Format: f}}
		s.runTyped([]byte("dbsize"))
		if got := strings.Contains(out.String(), "(0."); got != want {
			t.Errorf("format %d: %q", f, out.String())
		}
	}
}

// A lost connection ends the transaction that was open on it.
func TestLostWithinMulti(t *testing.T) {
	b := &scripted{err: &remote.LostError{Err: io.ErrUnexpectedEOF}}
	s := &session{Streams: terminal.Open(nil, io.Discard, nil), backend: b, inMulti: true, multiDB: 2, db: 5, name: "there"}
	if got := s.prompt(); got != "there[5](TX)> " {
		t.Errorf("before: %s", got)
	}
	s.runTyped([]byte("ping"))
	if got := s.prompt(); got != "there[2]> " {
		t.Errorf("after: %s", got)
	}
}

// The shell on a dumb terminal writes no history where none is wanted, and finds the lines of the last one where it is.
func TestHistoryFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	t.Setenv("STAVE_HISTFILE", path)
	if got := history.Path(); got != path {
		t.Errorf("%s", got)
	}
	t.Setenv("STAVE_HISTFILE", "/dev/null")
	if got := history.Path(); got != "" {
		t.Errorf("%s", got)
	}
	h := history.Load("")
	for _, line := range []string{"one", "two", "two"} {
		if n, err := h.Write(line); err != nil || n > 2 {
			t.Errorf("%d, %v", n, err)
		}
	}
	if first, err := h.GetLine(0); err != nil || first != "one" || h.Len() != 2 || len(h.Dump().([]string)) != 2 {
		t.Errorf("%q, %v, %d lines", first, err, h.Len())
	}
	for _, i := range []int{-1, 2} {
		if _, err := h.GetLine(i); err == nil {
			t.Errorf("line %d is there", i)
		}
	}
	if n, err := history.Load(filepath.Join(t.TempDir(), "no", "such", "directory")).Write("kept in memory"); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
