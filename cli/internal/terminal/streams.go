package terminal

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"
)

// What the program knows of its three streams. They are examined once, when it
// starts: whether a reply is printed with types must not depend on what happens
// to the terminal later.

// A terminal is the program's three streams and whether each is a terminal.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	InTTY    bool
	OutTTY   bool
	errTTY   bool

	bar atomic.Pointer[Progress] // the one that has the line; nil: none so far
}

// Open examines the streams once.
func Open(in io.Reader, out, err io.Writer) *Streams {
	return &Streams{In: in, Out: out, Err: err, InTTY: isTTY(in), OutTTY: isTTY(out), errTTY: isTTY(err)}
}

// isTTY reports whether a stream is a terminal; what tests pass in never is.
func isTTY(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Dumb reports a terminal that obeys no escape sequences.
func (t *Streams) Dumb() bool { return os.Getenv("TERM") == "dumb" }

// Color reports whether the output may carry colours (see no-color.org). A colour is never needed
// to understand an output.
func (t *Streams) Color() bool { return t.OutTTY && !t.Dumb() && os.Getenv("NO_COLOR") == "" }

// Paint is text in a colour, or in bold, by a parameter of SGR, if there are colours.
func Paint(colors bool, text, color string) string {
	if !colors || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// widthElsewhere is how many columns an output has that is no terminal.
const widthElsewhere = 100

// Width is how many columns the output has now: a terminal may be resized.
func (t *Streams) Width() int {
	if f, ok := t.Out.(*os.File); ok && t.OutTTY {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return widthElsewhere
}

// Height is how many lines the output shows at a time; 0 if it is no terminal.
func (t *Streams) Height() int {
	if f, ok := t.Out.(*os.File); ok && t.OutTTY {
		if _, lines, err := term.GetSize(int(f.Fd())); err == nil {
			return lines
		}
	}
	return 0
}

// Progress starts the bar of a command, which has the line from here on: there is one for all, and what is written to
// the standard error clears it first.
func (t *Streams) Progress(quiet bool, verb string, total int64) *Progress {
	bar := NewProgress(t.Bars(quiet), verb, total)
	t.bar.Store(bar)
	return bar
}

// Bars returns where progress may be drawn, or nil when it would not be seen.
func (t *Streams) Bars(quiet bool) io.Writer {
	if quiet || !t.errTTY || t.Dumb() {
		return nil
	}
	return t.Err
}

// Complain writes one error in the form that all of them have. One line, whatever the error: the
// standard error of a service is read by line.
func (t *Streams) Complain(err error) {
	if bar := t.bar.Load(); bar != nil {
		bar.Clear()
	}
	text := strings.TrimPrefix(err.Error(), "stave: ") // as some errors of the store begin
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "; ")
	fmt.Fprintf(t.Err, "stave: %s\n", Safe([]byte(text)))
}

// Interruptible returns a context that ends with the first SIGINT or SIGTERM.
// A second one then ends the process: whatever hangs must not hold it.
func (t *Streams) Interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
