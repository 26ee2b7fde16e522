package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// What the program knows of its three streams. They are examined once, when it
// starts: whether a reply is printed with types must not depend on what happens
// to the terminal later.

// A terminal is the program's three streams and whether each is a terminal.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	inTTY    bool
	outTTY   bool
	errTTY   bool
}

// newTerminal examines the streams once.
func newTerminal(in io.Reader, out, err io.Writer) *terminal {
	return &terminal{in: in, out: out, err: err, inTTY: isTTY(in), outTTY: isTTY(out), errTTY: isTTY(err)}
}

// isTTY reports whether a stream is a terminal; what tests pass in never is.
func isTTY(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// dumb reports a terminal that obeys no escape sequences.
func (t *terminal) dumb() bool { return os.Getenv("TERM") == "dumb" }

// color reports whether the output may carry colours (see no-color.org). A colour is never needed
// to understand an output.
func (t *terminal) color() bool { return t.outTTY && !t.dumb() && os.Getenv("NO_COLOR") == "" }

// bars returns where progress may be drawn, or nil when it would not be seen.
func (t *terminal) bars(quiet bool) io.Writer {
	if quiet || !t.errTTY || t.dumb() {
		return nil
	}
	return t.err
}

// complain writes one error in the form that all of them have. One line, whatever the error: the
// standard error of a service is read by line.
func (t *terminal) complain(err error) {
	text := strings.ReplaceAll(strings.TrimRight(err.Error(), "\n"), "\n", "; ")
	fmt.Fprintf(t.err, "stave: %s\n", safeText([]byte(text)))
}

// interruptible returns a context that ends with the first SIGINT or SIGTERM.
// A second one then ends the process: whatever hangs must not hold it.
func (t *terminal) interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
