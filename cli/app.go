// Package cli is the stave program: the shell, one-shot commands, the server's
// start, and the offline tools (merge, check, repair, backup, stats, import, export).
//
// [Run] is the whole of it: arguments and three streams in, an exit status out,
// so that tests run the program without a process. Nothing here is of use to a
// program that embeds Stave; whatever would be lives in package db or below and
// is only called from here.
//
// The exit status says what happened:
//
//	0    done
//	1    a command was answered with an error
//	2    wrong usage
//	3    a store could not be opened (it is locked, damaged or not there), or a
//	     server not reached
//	4    check found damage, or repair lost something
//	5    an import left lines out
//	130  interrupted
//
// Data goes to the standard output, errors go to the standard error in one
// line that starts with "stave: ".
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"
)

// The exit statuses, as documented above.
const (
	exitOK          = 0
	exitCommand     = 1
	exitUsage       = 2
	exitOpen        = 3
	exitDamage      = 4
	exitPartial     = 5
	exitInterrupted = 130
)

// defaultDir is the store that commands use when none is named.
const defaultDir = "stave-data"

// An exitError ends the program with a status of its own. A nil err means that
// everything there is to say has been said.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// failed gives err an exit status; nil stays nil.
func failed(status int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{status: status, err: err}
}

// usagef is an error in how the program was called.
func usagef(format string, args ...any) error {
	return &exitError{status: exitUsage, err: fmt.Errorf(format, args...)}
}

// A terminal is the program's three streams and what they are connected to.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	inTTY    bool
	outTTY   bool
	errTTY   bool
}

// newTerminal looks at the streams once.
func newTerminal(in io.Reader, out, err io.Writer) *terminal {
	return &terminal{in: in, out: out, err: err, inTTY: isTTY(in), outTTY: isTTY(out), errTTY: isTTY(err)}
}

func isTTY(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// dumb reports a terminal that obeys no escape sequences.
func (t *terminal) dumb() bool { return os.Getenv("TERM") == "dumb" }

// color reports whether the output may carry colours (see no-color.org).
func (t *terminal) color() bool { return t.outTTY && !t.dumb() && os.Getenv("NO_COLOR") == "" }

// bars returns where progress may be drawn, or nil when nobody would see it.
func (t *terminal) bars(quiet bool) io.Writer {
	if quiet || !t.errTTY || t.dumb() {
		return nil
	}
	return t.err
}

// complain writes one error in the form that all of them have.
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

// Run runs the program with args (args[0] is its name) and returns its exit
// status. Only the interactive shell needs the streams to be files.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := newTerminal(stdin, stdout, stderr)
	app := newApp(t)
	err := app.Run(flagsFirst(app, args))
	if err == nil {
		return exitOK
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	exit, ok := errors.AsType[*exitError](err)
	if !ok { // the command-line parser's own errors, such as help on an unknown command
		exit = &exitError{status: exitUsage, err: err}
	}
	if exit.err != nil || err != error(exit) { // the latter: something else went wrong besides
		t.complain(err)
	}
	return exit.status
}

// newApp lists the commands.
func newApp(t *terminal) *cli.App {
	usage := func(_ *cli.Context, err error, _ bool) error {
		return usagef("%v (see stave help)", err)
	}
	app := &cli.App{
		Name:     "stave",
		HelpName: "stave",
		Usage:    "an append-only store that speaks Redis data structures",
		Description: `Without a command, stave opens a shell on ./stave-data.

A store is a directory that one process opens at a time. shell, exec, import
and export open it themselves; serve offers it to Redis clients, and then shell
and exec reach it with --addr.

The exit status is 0 if all went well, 1 after an error reply, 2 for wrong usage,
3 if a store could not be opened or a server not reached, 4 if check found
damage or repair lost something, 5 if import skipped lines, and 130 when
interrupted. Errors go to the standard error, one line each.`,
		Version:        versionText(),
		Reader:         t.in,
		Writer:         t.out,
		ErrWriter:      t.err,
		OnUsageError:   usage,
		ExitErrHandler: func(*cli.Context, error) {},
		Commands: []*cli.Command{
			shellCommand(t), execCommand(t), serveCommand(t),
			importCommand(t), exportCommand(t),
			mergeCommand(t), checkCommand(t), repairCommand(t), backupCommand(t), statsCommand(t), benchCommand(t),
			versionCommand(t),
		},
	}
	for _, c := range app.Commands {
		c.OnUsageError = usage
		c.HideHelpCommand = true // "stave exec help" is a command for the store
		for _, f := range c.Flags {
			if f, ok := f.(*cli.BoolFlag); ok {
				f.DisableDefaultText = true
			}
		}
	}
	app.Action = func(c *cli.Context) error {
		if name := c.Args().First(); name != "" {
			return usagef("unknown command %q%s (see stave help)", name, suggestion(app, name))
		}
		return runShell(t, shellOptions{storeOptions: storeOptions{dir: orDefault(os.Getenv("STAVE_DIR"), defaultDir), format: defaultFormat(t)}})
	}
	return app
}

// suggestion says what a misspelt command may have meant.
func suggestion(app *cli.App, name string) string {
	if _, ok := lookupCommand(name); ok {
		return ": to run it on a store, stave exec " + name + " ..."
	}
	s := cli.SuggestCommand(app.Commands, name) // always finds something
	if best := strings.Split(s, `"`); len(best) == 3 && best[1] != "" && best[1][0] == name[0] {
		return fmt.Sprintf(": did you mean %q?", best[1])
	}
	return ""
}

// flagsFirst lets options stand behind arguments (stave merge D --dry-run),
// which the standard parser does not: it moves them to the front. The arguments
// of exec are the exception, because they are the store's, not ours:
// "stave exec ZADD board -1 ada".
func flagsFirst(app *cli.App, args []string) []string {
	if len(args) < 3 {
		return args
	}
	command := app.Command(args[1])
	if command == nil || command.Name == "exec" {
		return args
	}
	var flags, rest []string
	for i := 2; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			rest = append(rest, args[i+1:]...)
			i = len(args)
		case arg == "--help" || arg == "-h":
			return []string{args[0], args[1], arg} // with arguments it would be about one of them
		case len(arg) < 2 || arg[0] != '-':
			rest = append(rest, arg)
		default:
			flags = append(flags, arg)
			if takesValue(command, arg) && i+1 < len(args) {
				i++
				flags = append(flags, args[i])
			}
		}
	}
	return slices.Concat(args[:2], flags, []string{"--"}, rest)
}

// takesValue reports whether the option's value is the next argument.
func takesValue(command *cli.Command, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	for _, f := range command.Flags {
		if slices.Contains(f.Names(), name) {
			_, isBool := f.(*cli.BoolFlag)
			return !isBool
		}
	}
	return false
}
