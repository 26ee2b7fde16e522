package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/lines"
	"github.com/stavedb/stave/internal/resp"
)

// The conversation: read a line, run it, print what comes. Errors of commands
// are part of it; only a terminal that breaks ends it.
//
// Ctrl-C has two meanings. While a line is typed it drops the line, and the
// editor sees it as a key. While a command runs it is a signal that ends the
// waiting: a BLPOP, a SUBSCRIBE, a slow server.

// A lineEditor reads lines that a person types: readline on a capable
// terminal, a plain reader on a dumb one.
type lineEditor interface {
	// readLine returns io.EOF for Ctrl-D and errInterrupted for Ctrl-C.
	readLine() (string, error)
}

// errInterrupted means that the line was dropped by Ctrl-C.
var errInterrupted = errors.New("interrupted")

// interact is the conversation. A shell without a history file works all the same.
func (s *session) interact(o shellOptions) error {
	history := loadHistory(historyPath())
	var editor lineEditor
	if s.dumb() {
		editor = &plainEditor{s: s, lines: lines.NewReader(s.in)}
	} else {
		editor = newFullEditor(s, history)
	}
	if !o.quiet {
		fmt.Fprintf(s.out, "stave %s. HELP explains, Ctrl-D leaves.\n", versionText())
	}
	for !s.closed {
		line, err := editor.readLine()
		switch {
		case errors.Is(err, errInterrupted):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return failed(exitCommand, fmt.Errorf("read: %w", err))
		}
		if lines.Skip([]byte(line)) {
			continue
		}
		s.runTyped([]byte(line))
	}
	return nil
}

// runTyped runs a typed line and prints the result. The repetitions stop at an interrupt, at a lost
// connection and at QUIT, and not at an error reply.
func (s *session) runTyped(line []byte) {
	args, err := splitLine(line)
	if err != nil {
		fmt.Fprintf(s.out, "Invalid argument(s): %v\n", err)
		return
	}
	if len(args) == 0 || s.runLocal(args) {
		return
	}
	repeat := 1
	if len(args) > 1 && isRepeat(string(args[0])) {
		if repeat, err = strconv.Atoi(string(args[0])); err != nil {
			fmt.Fprintln(s.out, "Invalid repeat count")
			return
		}
		args = args[1:]
	}
	// A handler per line, and not one for the whole shell: between lines the
	// editor reads Ctrl-C as a key, and after this line it must work again.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the shell
	for range repeat {
		if ctx.Err() != nil || !s.runOnce(ctx, args) || s.closed {
			return
		}
	}
}

// slow is the time after which the shell says how long a command took.
const slow = 500 * time.Millisecond

// runOnce runs one command; false means that repeating it is pointless. Replies are printed as they
// arrive, which for SUBSCRIBE and MONITOR is until Ctrl-C.
func (s *session) runOnce(ctx context.Context, args [][]byte) bool {
	if listens(args) {
		fmt.Fprintln(s.out, "Reading messages... (press Ctrl-C to stop)")
	}
	started := time.Now()
	err := s.backend.do(ctx, args, func(r resp.Reply) {
		s.track(args, r)
		s.out.Write(s.printer.append(nil, r))
	})
	if err == nil {
		if elapsed := time.Since(started); elapsed >= slow && s.printer.format == formatTyped {
			fmt.Fprintf(s.out, "(%.2fs)\n", elapsed.Seconds())
		}
		return true
	}
	s.lostState()
	switch {
	case errors.Is(err, context.Canceled) && listens(args):
		fmt.Fprintln(s.out)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.out, "(interrupted; whether the command took effect is not known)")
	default:
		fmt.Fprintf(s.out, "Error: %v\n", err)
	}
	return false
}

// listens reports commands that send replies until interrupted. A subscription without a channel is
// an error of arity, and not a wait.
func listens(args [][]byte) bool {
	switch strings.ToLower(string(args[0])) {
	case "subscribe", "psubscribe", "ssubscribe", "monitor":
		return len(args) > 1 || strings.EqualFold(string(args[0]), "monitor")
	}
	return false
}

// runLocal runs what the shell itself understands. With arguments that do not fit, a local word is
// a command of the store: EXIT with an argument is unknown there, and its error says so.
func (s *session) runLocal(args [][]byte) bool {
	switch strings.ToLower(string(args[0])) {
	case "exit", "quit":
		s.closed = len(args) == 1
		return s.closed
	case "clear":
		if len(args) == 1 {
			fmt.Fprint(s.out, "\x1b[H\x1b[2J")
			return true
		}
	case ":set":
		s.setPreference(args[1:])
		return true
	}
	text, ok, err := s.help(args)
	if err != nil {
		text = err.Error() + "\n"
	}
	fmt.Fprint(s.out, text)
	return ok
}

// setPreference handles :set hints and :set nohints, as in redis-cli.
func (s *session) setPreference(args [][]byte) {
	switch string(bytes.Join(args, []byte(" "))) {
	case "hints":
		s.noHints = false
	case "nohints":
		s.noHints = true
	default:
		fmt.Fprintln(s.out, ":set knows hints and nohints")
	}
}

// isLocal reports the words that runLocal knows.
func isLocal(word string) bool {
	switch strings.ToLower(word) {
	case "help", "?", "exit", "quit", "clear", ":set":
		return true
	}
	return false
}

// prompt is what the interactive shell shows before a line. It is asked for before each line, since
// a command may have changed it.
func (s *session) prompt() string {
	text := fmt.Sprintf("%s[%d]", s.name, s.db)
	if s.inMulti {
		text += "(TX)"
	}
	return text + "> "
}
