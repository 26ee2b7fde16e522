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

	"github.com/stavedb/stave/cli/internal/history"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
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
	// readLine returns io.EOF for Ctrl-D and errInterrupted for Ctrl-C. A line that answers s.question is not kept in
	// the history.
	readLine() (string, error)
}

// errInterrupted means that the line was dropped by Ctrl-C. It never leaves the shell, so it has no status.
var errInterrupted = errors.New("interrupted")

// interact is the conversation. A shell without a history file works all the same. Nothing that a command replies ends
// it with a status: that is 0 however many errors were shown, unless the terminal fails.
func (s *session) interact(o shellOptions) error {
	history := history.Load(history.Path())
	s.pager = defaultPager()
	s.begin()
	if s.Dumb() {
		s.editor = &plainEditor{s: s, lines: lines.NewReader(s.In)}
	} else {
		s.editor = newFullEditor(s, history)
	}
	if !o.quiet {
		fmt.Fprintf(s.Out, "stave %s. HELP explains, Ctrl-D leaves.\n", versionText())
	}
	for !s.closed {
		line, err := s.editor.readLine()
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
//
// The order decides what a line means: a pipe is split off first, for it is no word of the command; the
// shell's own words come before the store's, and not with a pipe; then a count, :watch and PEEK. A
// question comes last, when it is known what would be done, and before the program of the pipe is
// started.
func (s *session) runTyped(line []byte) {
	line, pipe := terminal.SplitPipe(line)
	args, err := terminal.SplitLine(line)
	if err != nil {
		fmt.Fprintf(s.Out, "Invalid argument(s): %v\n", err)
		return
	}
	if len(args) == 0 || len(pipe) == 0 && s.runLocal(args) {
		return
	}
	// As in redis-cli a number before a command is how often it runs; a number alone is a command.
	repeat := 1
	if len(args) > 1 && terminal.IsRepeat(string(args[0])) {
		if repeat, err = strconv.Atoi(string(args[0])); err != nil {
			fmt.Fprintln(s.Out, "Invalid repeat count")
			return
		}
		args = args[1:]
	}
	// A handler per line, and not one for the whole shell: between lines the
	// editor reads Ctrl-C as a key, and after this line it must work again.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the shell
	if string(args[0]) == ":watch" && len(pipe) == 0 {
		s.watchCommand(ctx, args)
		return
	}
	if key, isPeek := peeks(args); isPeek {
		s.peek(ctx, key)
		return
	}
	if !s.confirmed(args) {
		fmt.Fprintln(s.Out, "(not done)")
		return
	}
	if len(pipe) > 0 {
		defer s.pipeInto(ctx, string(pipe))()
	}
	for range repeat {
		if ctx.Err() != nil || !s.runOnce(ctx, args) || s.closed {
			return
		}
	}
}

// slow is the time after which the shell says how long a command took, as in redis-cli. Tests of what the screen shows
// set it to more.
var slow = 500 * time.Millisecond

// runOnce runs one command; false means that repeating it is pointless. Replies are printed as they
// arrive, which for SUBSCRIBE and MONITOR is until Ctrl-C.
func (s *session) runOnce(ctx context.Context, args [][]byte) bool {
	if listens(args) {
		fmt.Fprintln(s.Out, "Reading messages... (press Ctrl-C to stop)")
	}
	started := time.Now()
	var page []byte
	paged := s.paged(args)
	err := s.backend.Do(ctx, args, func(r resp.Reply) {
		s.track(args, r)
		text := s.render(args, r)
		if paged {
			page = append(page, text...)
		} else {
			s.Out.Write(text)
		}
	})
	elapsed := time.Since(started)
	s.page(page)
	if err == nil {
		switch {
		case s.printer.Format != terminal.Typed:
		case s.timing:
			fmt.Fprintf(s.Out, "(%s)\n", humanize.Latency(elapsed))
		case elapsed >= slow:
			fmt.Fprintf(s.Out, "(%.2fs)\n", elapsed.Seconds())
		}
		return true
	}
	// An error of Do, and not a reply, means that the connection is gone, or that the wait was interrupted.
	s.lostState()
	switch {
	case errors.Is(err, context.Canceled) && listens(args):
		fmt.Fprintln(s.Out)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.Out, "(interrupted; whether the command took effect is not known)")
	default:
		fmt.Fprintf(s.Out, "Error: %v\n", err)
	}
	return false
}

// listens reports commands that send replies until interrupted. A subscription without a channel is
// an error of arity, and not a wait. args has a name at least.
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
			fmt.Fprint(s.Out, "\x1b[H\x1b[2J")
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
	s.page([]byte(text))
	return ok
}

// setPreference handles :set hints and :set nohints, as in redis-cli, the form of replies, and the pager. What it does
// not know is answered with all that it knows. The file of settings gives its lines here too.
func (s *session) setPreference(args [][]byte) {
	text := string(bytes.Join(args, []byte(" ")))
	if f, ok := terminal.ParseFormat(text); ok {
		s.printer.Format = f
		return
	}
	if command, ok := strings.CutPrefix(text, "pager "); ok && command != "on" && command != "off" {
		s.pager = strings.TrimSpace(command)
		return
	}
	switch text {
	case "hints":
		s.noHints = false
	case "nohints":
		s.noHints = true
	case "timing":
		s.timing = true
	case "notiming":
		s.timing = false
	case "pager", "pager on":
		s.pager = defaultPager()
	case "nopager", "pager off":
		s.pager = ""
	default:
		fmt.Fprintf(s.Out, ":set knows hints, nohints, timing, notiming, pager, nopager, and as forms of replies %s\n", terminal.FormatNames())
	}
}

// isLocal reports the words that runLocal and runTyped know, for the colour of a line: what is neither local nor in the
// table is red.
func isLocal(word string) bool {
	switch strings.ToLower(word) {
	case "help", "?", "exit", "quit", "clear", ":set", ":watch", "peek":
		return true
	}
	return false
}

// prompt is what the interactive shell shows before a line. It is asked for before each line, since
// a command may have changed it. It asks the session alone, never the server.
func (s *session) prompt() string {
	if s.question != "" {
		return s.question
	}
	text := fmt.Sprintf("%s[%d]", s.name, s.db)
	if s.inMulti {
		text += "(TX)"
	}
	return text + "> "
}
