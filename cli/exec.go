package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// One command, or the lines of a script. The arguments after the first are the
// store's and not ours, whatever they look like: "stave exec ZADD board -1 ada"
// has no option -1.
//
// The files exec_* are what exec does in the place of a command: modes has the
// list of these, pipe sends many commands, scan lists the names of keys. A script is in script.go, for the shell runs one as well.

// execCommand describes stave exec. Its examples are the three ways to give arguments: words, the
// standard input as the last one, and a script.
func execCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name:   "exec",
		Flags:  append(storeFlags(), execFlags()...),
		Action: func(c *cli.Context) error { return runExec(t, c) },
	}
}

// execFlags say what is done with a command, or in the place of one. stave cli has them too.
func execFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: "stdin-arg", Aliases: []string{"x"}, Usage: "read the last argument from the standard input"},
		&cli.StringFlag{Name: "stdin-tag", Aliases: []string{"X"}, Usage: "read the argument that is `TAG` from the standard input"},
		&cli.IntFlag{Name: "repeat", Aliases: []string{"r"}, Value: 1, Usage: "run the command `N` times; -1: until Ctrl-C"},
		&cli.Float64Flag{Name: "interval", Aliases: []string{"i"}, Usage: "with -r: wait so many `SECONDS` before the next time"},
		&cli.BoolFlag{Name: "keep-going", Aliases: []string{"k"}, Usage: "in a script and with --pipe, go on after an error; the status is 1 all the same"},
	}, modeFlags()...)
}

// readsOnly says whether a command, with its arguments, only reads what is stored: then the store is opened without its
// lock, alongside a server. A wrong no costs that; a wrong yes would be an error of the command, and never a write.
func readsOnly(args [][]byte) bool {
	if len(args) == 0 {
		return false
	}
	c, ok := lookupCommand(string(args[0]))
	if ok && len(args) > 1 && len(c.Subcommands) > 0 {
		c, ok = lookupCommand(string(args[0]) + " " + string(args[1]))
	}
	return ok && (c.Flags&command.ReadOnly != 0 || strings.HasSuffix(c.Name, "_ro")) // EVAL_RO and its kin are not flagged
}

// runExec runs the command of the arguments, or the script of the standard input if there is none.
// The standard input is read whole for -x, before the store is opened: a slow pipe does not hold
// the store's lock. The output is buffered, and its error counts, as that of a command does: a full
// disk after a redirection is not a success.
//
// All options are judged before anything is opened. Then come, in this order, what needs no store, a
// try in memory of a command whose store is not there yet, and the store.
func runExec(t *terminal.Streams, c *cli.Context) (err error) {
	o, err := readStoreOptions(t, c)
	if err != nil {
		return err
	}
	var args [][]byte
	for _, arg := range c.Args().Slice() {
		args = append(args, []byte(arg))
	}
	mode, err := chosenMode(c)
	tag := c.String("stdin-tag")
	switch {
	case err != nil:
		return err
	case len(args) == 0 && c.Bool("stdin-arg"):
		return usagef("-x needs a command to add an argument to")
	case len(args) == 0 && tag != "":
		return usagef("-X needs a command with an argument to replace")
	case tag != "" && c.Bool("stdin-arg"):
		return usagef("-x and -X exclude each other")
	case c.Int("repeat") < -1 || c.Int("repeat") == 0:
		return usagef("-r %d: a command runs once at least; -1 is until Ctrl-C", c.Int("repeat"))
	case !(c.Float64("interval") >= 0 && c.Float64("interval") <= maxInterval):
		return usagef("-i %v: the seconds between two times are 0 to %d", c.Float64("interval"), int(maxInterval))
	case mode != nil:
		return runMode(t, c, mode, o)
	case len(args) == 0 && (c.IsSet("repeat") || c.IsSet("interval")):
		return usagef("-r and -i need a command to repeat")
	case len(args) == 0 && t.InTTY:
		return usagef("exec needs a command (stave shell is the interactive one)")
	case c.Bool("stdin-arg") || tag != "":
		data, err := io.ReadAll(t.In)
		if err != nil {
			return failed(exitCommand, fmt.Errorf("stdin: %w", err))
		}
		if args, err = insertInput(args, tag, data); err != nil {
			return err
		}
	}
	// From here on there is a store or a connection to close, so every return goes through
	// closeInto.
	ctx, stop := t.Interruptible()
	defer stop()
	if done, err := withoutStore(t, o, args); done || err != nil {
		return err
	}
	o.readOnly, o.late = readsOnly(args), len(args) == 0
	if len(args) > 0 && o.addr == "" && !o.readOnly {
		if done, err := withoutNewStore(ctx, t, o, args, c.Int("repeat")); done || err != nil {
			return err
		}
	}
	// A merge that one command begins by the way would be broken off when it ends, or hold it up.
	o.noMerge = len(args) > 0 && !strings.EqualFold(string(args[0]), "bgrewriteaof")
	s, err := newSession(ctx, t, o)
	if err != nil {
		return err
	}
	defer closeInto(&err, s.backend.Close)
	if len(args) == 0 {
		return s.runScript(ctx, t.In, c.Bool("keep-going"))
	}
	return s.runRepeatedly(ctx, args, c.Int("repeat"), time.Duration(c.Float64("interval")*float64(time.Second)))
}

// runRepeatedly runs one command n times, -1 until it is interrupted, with a pause in between. The first error reply
// ends it. The output is flushed after each time.
func (s *session) runRepeatedly(ctx context.Context, args [][]byte, n int, pause time.Duration) error {
	for {
		if err := s.runBuffered(ctx, args); err != nil {
			return err
		}
		if n--; n == 0 {
			return nil
		}
		n = max(n, -1) // forever
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// withoutStore does what needs neither a store nor a server: HELP, and refusing a command that no store would run, so
// that a slip makes no store.
func withoutStore(t *terminal.Streams, o storeOptions, args [][]byte) (done bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	// A session without a backend is enough for HELP. What a server would run is the server's to know, so a command is
	// looked up here only for a store.
	s := &session{Streams: t, printer: terminal.Printer{Format: o.format, Color: t.Color()}}
	text, done, err := s.help(args)
	switch {
	case done && err == nil:
		_, err = io.WriteString(t.Out, text)
	case !done && o.addr == "":
		_, err = server.Resolve(args)
	}
	return done, failed(exitCommand, err)
}

// withoutNewStore runs a command that would make a store, in memory: one that is refused, or has nothing to store,
// makes none. A command that is to store something is not done by that, whatever its reply, nor is one that is to run
// several times and was not refused. done means that all there is to do has been done, and err is the command's;
// otherwise the command is to be run again in a store that is made for it.
func withoutNewStore(ctx context.Context, t *terminal.Streams, o storeOptions, args [][]byte, repeat int) (done bool, err error) {
	if holds, err := holdsStore(o.dir); holds || err != nil {
		return false, err
	}
	o.inMemory = true
	s, err := newSession(ctx, t, o)
	if err != nil {
		return false, err
	}
	defer closeInto(&err, s.backend.Close)
	// A commit, and nothing else, moves the sequence number.
	store := s.backend.(*embedded).store
	before := store.Stats().Sequence
	var out bytes.Buffer
	refused := s.runCommand(ctx, &out, args)
	switch {
	case ctx.Err() != nil:
		return true, ctx.Err()
	case store.Stats().Sequence != before || refused == nil && repeat != 1:
		return false, nil
	}
	_, err = t.Out.Write(out.Bytes())
	return true, failed(exitCommand, errors.Join(refused, err))
}

// maxInterval is the longest pause between two times that a command runs, in seconds: eleven days.
const maxInterval = 1e6

// runBuffered runs one command and prints its reply. An interrupt has precedence over an error: the error is most often
// what came of it.
func (s *session) runBuffered(ctx context.Context, args [][]byte) error {
	out := bufio.NewWriterSize(s.Out, 64<<10)
	err := s.runCommand(ctx, out, args)
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failed(statusOf(err), err)
}
