package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// An error is one line, whatever its text, and gives a terminal nothing to obey.
func TestComplain(t *testing.T) {
	for text, want := range map[string]string{
		"plain":              "stave: plain\n",
		"stave: not found":   "stave: not found\n",
		"two\nlines\n":       "stave: two; lines\n",
		"\x1b[2Jclear":       "stave: \\x1b[2Jclear\n",
		"grüße\u009b":        "stave: grüße\\x9b\n",
		"a\ttab":             "stave: a\ttab\n",
		"a return\rand more": "stave: a return\rand more\n",
	} {
		var errs bytes.Buffer
		Open(nil, nil, &errs).Complain(errors.New(text))
		if got := errs.String(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Colours and bars are for capable terminals, and for those who want them.
func TestWhatATerminalGets(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if tty := Open(f, f, f); tty.InTTY || tty.OutTTY || tty.errTTY {
		t.Error("a file is a terminal")
	}
	tests := []struct {
		name           string
		term, noColor  string
		terminal       bool
		quiet          bool
		color, bars    bool
		wantTypedReply bool
	}{
		{name: "a terminal", term: "xterm", terminal: true, color: true, bars: true, wantTypedReply: true},
		{name: "a pipe", term: "xterm"},
		{name: "NO_COLOR", term: "xterm", noColor: "1", terminal: true, bars: true, wantTypedReply: true},
		{name: "dumb", term: "dumb", terminal: true, wantTypedReply: true},
		{name: "quiet", term: "xterm", terminal: true, quiet: true, color: true, wantTypedReply: true},
	}
	for _, test := range tests {
		t.Setenv("TERM", test.term)
		t.Setenv("NO_COLOR", test.noColor)
		tty := &Streams{Err: io.Discard, InTTY: test.terminal, OutTTY: test.terminal, errTTY: test.terminal}
		if got := tty.Color(); got != test.color {
			t.Errorf("%s: colours %v", test.name, got)
		}
		if got := tty.Bars(test.quiet) != nil; got != test.bars {
			t.Errorf("%s: bars %v", test.name, got)
		}
		if got := DefaultFormat(tty) == Typed; got != test.wantTypedReply {
			t.Errorf("%s: typed replies %v", test.name, got)
		}
	}
}

// A bar is drawn ten times a second at most, in one line, and leaves nothing.
func TestProgressDrawing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, "import", 1000)
		p.Update(1, 1, 1)
		if out.Len() > 0 {
			t.Errorf("drawn at once: %q", out.String())
		}
		for i := range int64(10) {
			time.Sleep(Interval / 4)
			p.Update(i*100, i*100, i)
		}
		if n := strings.Count(out.String(), "\r"); n != 2 {
			t.Errorf("drawn %d times: %q", n, out.String())
		}
		if !strings.HasSuffix(out.String(), " 700 B 7 keys 3.5 KB/s ETA 0s\x1b[K") {
			t.Errorf("%q", out.String())
		}
		p.Clear()
		if !strings.HasSuffix(out.String(), "\x1b[K\r\x1b[K") {
			t.Errorf("%q", out.String())
		}
		n := out.Len()
		p.Clear()
		if out.Len() != n {
			t.Error("cleared twice")
		}
		silent := NewProgress(nil, "import", 10)
		time.Sleep(time.Second)
		silent.Update(1, 1, 1)
		silent.Clear()
	})
}

func TestProgressLine(t *testing.T) {
	tests := []struct {
		total, done, bytes, keys int64
		want                     string
	}{
		{0, 0, 0, 0, "v 0 B 0 keys 0 B/s"},
		{0, 500, 2000, -1, "v 2.0 KB 1.0 KB/s"},
		{100, 0, 0, 0, "v [....................]   0% 0 B 0 keys 0 B/s"},
		{100, 50, 2000, 1500, "v [##########..........]  50% 2.0 KB 1,500 keys 1.0 KB/s ETA 2s"},
		{100, 100, 2000, 2, "v [####################] 100% 2.0 KB 2 keys 1.0 KB/s"},
		{100, 300, 2000, 2, "v [####################] 100% 2.0 KB 2 keys 1.0 KB/s"}, // more than was known at first
	}
	for _, test := range tests {
		p := NewProgress(nil, "v", test.total)
		if got := p.line(test.done, test.bytes, test.keys, 2*time.Second); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

func TestTable(t *testing.T) {
	table := NewTable("name", "size", "note")
	var out strings.Builder
	if err := table.Write(&out); err != nil || out.String() != "name  size  note\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	table.Row("grüße", "7", "")
	table.Row("b", "1,234", "x")
	out.Reset()
	if err := table.Write(&out); err != nil || out.String() != "name    size  note\ngrüße      7\nb      1,234  x\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := table.Write(brokenWriter{}); err == nil {
		t.Error("a broken pipe is no error")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A reader of a pipe without a writer ends with its context.
func TestInterruptibleReader(t *testing.T) {
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	r := NewReader(ctx, in)
	go out.Write([]byte("hello"))
	buf := make([]byte, 3)
	for _, want := range []string{"hel", "lo"} {
		if n, err := r.Read(buf); err != nil || string(buf[:n]) != want {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	read := make(chan error)
	go func() {
		_, err := r.Read(buf)
		read <- err
	}()
	cancel()
	if err := <-read; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	out.Close() // or the goroutine that reads would wait for ever
}

// Bytes read before an error come before it, and the error stays.
func TestInterruptibleReaderEnds(t *testing.T) {
	r := NewReader(t.Context(), io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errors.New("hung up"))))
	got, err := io.ReadAll(r)
	if string(got) != "abc" || err == nil || err.Error() != "hung up" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil || err.Error() != "hung up" {
		t.Errorf("once more: %v", err)
	}
}
