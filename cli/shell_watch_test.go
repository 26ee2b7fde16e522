package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
)

// A counting backend ends the context with its last run, as Ctrl-C does, or fails then.
type counting struct {
	left int
	stop func()
	err  error
}

func (b *counting) Do(_ context.Context, _ [][]byte, reply func(resp.Reply)) error {
	if b.left--; b.left == 0 {
		b.stop()
		return b.err
	}
	reply(resp.Reply{Kind: resp.Integer, Int: int64(b.left)})
	return nil
}

func (b *counting) Close() error { return nil }

// :watch shows one reply after another, ends with Ctrl-C, and says so if the server is lost.
func TestWatchCommand(t *testing.T) {
	for err, want := range map[error]string{
		context.Canceled:    "every 50ms: llen q\n(integer) 2\nevery 50ms: llen q\n(integer) 1\n",
		io.ErrUnexpectedEOF: "every 50ms: llen q\n(integer) 2\nevery 50ms: llen q\n(integer) 1\nError: unexpected EOF\n",
	} {
		s, out := newTestSession(t, terminal.Typed)
		own := s.backend
		ctx, cancel := context.WithCancel(t.Context())
		b := &counting{left: 3, stop: cancel, err: err}
		if !errors.Is(err, context.Canceled) {
			b.stop = func() {}
		}
		s.backend = b
		s.watchCommand(ctx, words(":watch", "0.05", "llen", "q"))
		s.backend = own
		cancel()
		if got := out.String(); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
	got := converse(t, ":watch\n:watch flushall\n:watch 1 subscribe a\nmulti\n:watch get a\n")
	for _, want := range []string{":watch takes a command", ":watch does not run FLUSHALL again", ":watch does not run SUBSCRIBE again", ":watch does not run GET again"} {
		if !strings.Contains(got, want) {
			t.Errorf("the screen lacks %q:\n%s", want, got)
		}
	}
}

// What stands before a command does not hide it from completion and hints.
func TestAfterPrefix(t *testing.T) {
	for line, want := range map[string]string{
		"get a": "get a", "5 get a": "get a", "5": "5", ":watch": ":watch", ":watch get a": "get a", ":watch 2 get a": "get a", ":watch 0.5 get": "get",
		":watch 0 get": "0 get", ":watch 2": "2", "0 get": "0 get",
	} {
		if got := afterPrefix(strings.Fields(line)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := hint(":watch 2 lrange l "); got != "LRANGE .. start stop" {
		t.Errorf("hint %q", got)
	}
	if got := string(firstLines([]byte("a\nb\nc\n"), 2)); got != "a\nb\n" {
		t.Errorf("%q", got)
	}
}

// words makes a command of strings, as Do takes it.
func words(args ...string) [][]byte {
	list := make([][]byte, len(args))
	for i, arg := range args {
		list[i] = []byte(arg)
	}
	return list
}
