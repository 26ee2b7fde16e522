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

	"github.com/reeflective/readline"
	"github.com/reeflective/readline/inputrc"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
	"github.com/urfave/cli/v2"
)

// shellOptions are the options of the shell.
type shellOptions struct {
	storeOptions
	keepGoing bool
	quiet     bool
}

func shellCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "shell",
		Usage:     "Opens an interactive shell on a store or on a server",
		UsageText: "stave shell [--dir DIR | --addr HOST:PORT]\n" + "command lines | stave shell [--keep-going] ...",
		Description: `Lines are commands as redis-cli takes them; HELP explains. With a terminal
there are completion (Tab), a hint of the arguments that follow, and a history
in ~/.stave_history ($STAVE_HISTFILE), which passwords do not enter.

When the standard input is not a terminal its lines are run as a script: one
command a line, blank lines and lines that start with # skipped. The first error
ends it with status 1 and the number of the line, unless --keep-going is given.`,
		Flags: append(storeFlags(),
			&cli.BoolFlag{Name: "keep-going", Aliases: []string{"k"}, Usage: "go on with the next line after an error; the status is 1 all the same"},
			quietFlag()),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("shell takes no arguments; stave exec runs a single command")
			}
			o, err := readStoreOptions(t, c)
			if err != nil {
				return err
			}
			return runShell(t, shellOptions{storeOptions: o, keepGoing: c.Bool("keep-going"), quiet: c.Bool("quiet")})
		},
	}
}

// quietFlag silences whatever is not a result or an error.
func quietFlag() cli.Flag {
	return &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing but results and errors"}
}

// runShell talks to a person if there is one, and runs a script otherwise.
func runShell(t *terminal, o shellOptions) (err error) {
	ctx, stop := t.interruptible()
	defer stop()
	s, err := newSession(ctx, t, o.storeOptions)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.backend.close(); closeErr != nil && err == nil {
			err = failed(exitCommand, fmt.Errorf("close: %w", closeErr))
		}
	}()
	if !t.inTTY || !t.outTTY {
		return s.runScript(ctx, t.in, o.keepGoing)
	}
	stop() // from here on Ctrl-C is the shell's
	return s.interact(o)
}

// A lineEditor reads lines that a person types: readline on a capable
// terminal, a plain reader on a dumb one.
type lineEditor interface {
	// readLine returns io.EOF for Ctrl-D and errInterrupted for Ctrl-C.
	readLine() (string, error)
}

var errInterrupted = errors.New("interrupted")

// interact is the conversation.
func (s *session) interact(o shellOptions) error {
	lines := loadHistory(historyPath())
	var editor lineEditor
	if s.dumb() {
		editor = &plainEditor{s: s, lines: newLineReader(s.in)}
	} else {
		editor = newFullEditor(s, lines)
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
		if skipped([]byte(line)) {
			continue
		}
		s.runTyped([]byte(line))
	}
	return nil
}

// runTyped runs what was typed and prints whatever comes of it.
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

// runOnce runs one command; false means that repeating it is pointless.
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

// listens reports commands that go on replying until interrupted.
func listens(args [][]byte) bool {
	switch strings.ToLower(string(args[0])) {
	case "subscribe", "psubscribe", "ssubscribe", "monitor":
		return len(args) > 1 || strings.EqualFold(string(args[0]), "monitor")
	}
	return false
}

// runLocal runs what the shell itself understands.
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

// A plainEditor reads lines from a terminal that cannot move its cursor.
type plainEditor struct {
	s     *session
	lines *lineReader
}

func (e *plainEditor) readLine() (string, error) {
	fmt.Fprint(e.s.out, e.s.prompt())
	line, err := e.lines.next()
	if err != nil {
		fmt.Fprintln(e.s.out)
	}
	return string(line), err
}

// A fullEditor is readline with everything it offers.
type fullEditor struct {
	s  *session
	rl *readline.Shell
}

// newFullEditor must only be called when standard input and output are
// terminals: readline sends escape sequences to whatever they are.
func newFullEditor(s *session, lines *history) *fullEditor {
	rl := readline.NewShell()
	e := &fullEditor{s: s, rl: rl}
	rl.Prompt.Primary(s.prompt)
	rl.Prompt.Secondary(func() string { return strings.Repeat(".", max(0, len(s.prompt())-2)) + "> " })
	rl.AcceptMultiline = func(line []rune) bool { return !openQuote([]byte(string(line))) }
	bindTab(rl.Config)
	rl.History.Delete()
	rl.History.Add("stave", lines)
	rl.Completer = e.complete
	rl.Hint.SetProvider(e.hint)
	if s.color() {
		rl.SyntaxHighlighter = highlight
	}
	return e
}

// bindTab makes Tab show what there is, with the part that all have in common
// inserted, and walk through it when pressed again. readline's own default
// inserts the first candidate unseen. An inputrc that binds Tab wins.
func bindTab(config *inputrc.Config) {
	const tab = "\t"
	for _, keymap := range []string{"emacs", "vi-insert"} {
		if config.Binds[keymap][tab].Action == "complete" {
			config.Binds[keymap][tab] = inputrc.Bind{Action: "menu-complete"}
			config.Vars["menu-complete-display-prefix"] = true
		}
	}
}

func (e *fullEditor) readLine() (string, error) {
	line, err := e.rl.Readline()
	switch {
	case errors.Is(err, readline.ErrInterrupt):
		return "", errInterrupted
	case err != nil:
		return "", err
	}
	return line, nil
}

// complete answers Tab.
func (e *fullEditor) complete(line []rune, cursor int) readline.Completions {
	var found []readline.Completion
	for _, c := range e.s.complete(string(line[:cursor])) {
		found = append(found, readline.Completion{Value: c.value, Display: c.value, Description: c.note, Tag: c.group})
	}
	return readline.CompleteRaw(found).NoSort()
}

// hint is shown below the line while it is typed.
func (e *fullEditor) hint(line []rune, cursor int) []rune {
	if e.s.noHints {
		return nil
	}
	text := hint(string(line[:min(cursor, len(line))]))
	if text == "" {
		return nil
	}
	if e.s.color() {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	return []rune(text)
}

// highlight shows a known command in bold and an unknown one in red.
func highlight(line []rune) string {
	text := string(line)
	start := len(text) - len(strings.TrimLeft(text, " "))
	if word, rest, ok := strings.Cut(text[start:], " "); ok && isRepeat(word) {
		start = len(text) - len(strings.TrimLeft(rest, " "))
	}
	end := len(text)
	if i := strings.IndexByte(text[start:], ' '); i >= 0 {
		end = start + i
	}
	word := text[start:end]
	style := "\x1b[1m"
	if server.Lookup(word) == nil && !isLocal(word) {
		if end == len(text) { // still being typed
			return text
		}
		style = "\x1b[31m"
	}
	return text[:start] + style + word + "\x1b[0m" + text[end:]
}

// isLocal reports the words that runLocal knows.
func isLocal(word string) bool {
	switch strings.ToLower(word) {
	case "help", "?", "exit", "quit", "clear", ":set":
		return true
	}
	return false
}
