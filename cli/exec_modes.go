package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
)

// What exec does in place of one command: the modes of redis-cli, under their names there. A name of redis-cli's that
// there is no mode for is known too, as an option that is not in the help: whoever tries it is told what there is
// instead.

// An execMode is such a mode. run gets the options of the command line; the session is opened and closed around it. A
// mode that has no run is one that there is not.
type execMode struct {
	name, usage string
	run         func(ctx context.Context, s *session, c *cli.Context) error
	instead     string // of a mode that there is not: why, and what there is
}

// execModes are all of them. The order is that of the help.
var execModes = []execMode{
	{name: "pipe", usage: "run many commands from the standard input, as lines or as clients send them, without printing replies",
		run: func(ctx context.Context, s *session, c *cli.Context) error {
			return s.runPipe(ctx, s.In, c.Bool("keep-going"))
		}},
	{name: "scan", usage: "list the names of keys", run: runScan},
	{name: "bigkeys", instead: biggestKeys},
	{name: "memkeys", instead: biggestKeys},
	{name: "keystats", instead: biggestKeys},
	{name: "latency", instead: "of a server stave top shows how long its commands take, and redis-cli --latency the round trips"},
	{name: "hotkeys", instead: "nothing counts how often a key is read; stave top shows the busiest commands of a server, and MONITOR each of them"},
	{name: "stat", instead: "stave top shows a running server once a second, and stave stats --watch a directory"},
}

// biggestKeys is said in place of three modes.
const biggestKeys = "stave inspect DIR lists the biggest keys and what there is of each type, also of a directory that a server has open"

// modeFlags are the options of the modes, one for each row of execModes, and those that choose among keys. A mode that
// there is not has a hidden one.
func modeFlags() (flags []cli.Flag) {
	for _, m := range execModes {
		flags = append(flags, &cli.BoolFlag{Name: m.name, Usage: m.usage, Hidden: m.run == nil})
	}
	return append(flags,
		&cli.StringFlag{Name: "pattern", Usage: "with --scan: only keys whose names match `GLOB`"},
		&cli.StringFlag{Name: "type", Usage: "with --scan: only keys of `TYPE`: string, hash, list, set, zset or stream"})
}

// chosenMode is the mode that the options ask for, nil for a command or a script. Options that the mode does not use
// are errors, here and not where they would be ignored.
func chosenMode(c *cli.Context) (chosen *execMode, err error) {
	for i := range execModes {
		m := &execModes[i]
		switch {
		case !c.Bool(m.name):
		case m.run == nil:
			return nil, usagef("--%s: %s", m.name, m.instead)
		case chosen != nil:
			return nil, usagef("--%s and --%s exclude each other", chosen.name, m.name)
		default:
			chosen = m
		}
	}
	scans := chosen != nil && chosen.name == "scan"
	switch {
	case !scans && (c.IsSet("pattern") || c.IsSet("type")):
		return nil, usagef("--pattern and --type need --scan")
	case chosen == nil:
		return nil, nil
	case c.IsSet("type") && peekCommands[c.String("type")].unit == "":
		return nil, usagef("--type %q: the types are string, hash, list, set, zset and stream", c.String("type"))
	case c.NArg() > 0:
		return nil, usagef("--%s takes no command", chosen.name)
	case c.Bool("stdin-arg") || c.String("stdin-tag") != "":
		return nil, usagef("-x and -X need a command")
	case c.IsSet("repeat") || c.IsSet("interval"):
		return nil, usagef("-r and -i need a command to repeat")
	}
	return chosen, nil
}

// runMode opens what a mode works on, and runs it. All but --pipe only read, so they run alongside a server and make no
// store. A mode returns an exitError where it has decided on a status; any other error is judged by statusOf.
func runMode(t *terminal.Streams, c *cli.Context, m *execMode, o storeOptions) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	o.readOnly = m.name != "pipe"
	s, err := newSession(ctx, t, o)
	if err != nil {
		return err
	}
	defer closeInto(&err, s.backend.Close)
	err = m.run(ctx, s, c)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, decided := errors.AsType[*exitError](err); decided {
		return err
	}
	return failed(statusOf(err), err)
}

// many runs commands that have one reply each: on a server all at once, which saves waiting for each reply; in a store
// one after another, until reply returns false. What reply returns is ignored for a server, which has all commands by
// then and executes them: replies that come after a false must be taken, too. After a failure in the middle no further
// reply can be assigned to a command, so the connection is closed.
func (s *session) many(ctx context.Context, commands [][][]byte, reply func(i int, r resp.Reply) bool) error {
	r, isRemote := s.backend.(*remote.Conn)
	if !isRemote {
		for i, args := range commands {
			more := true
			if err := s.backend.Do(ctx, args, func(r resp.Reply) { more = reply(i, r) && more }); err != nil {
				return err
			}
			if !more {
				return nil
			}
		}
		return nil
	}
	// The commands are written by another goroutine while replies are read, so args must not change meanwhile.
	err := r.Pipeline(ctx, len(commands), func(dst []byte, i int) ([]byte, error) {
		return resp.AppendCommand(dst, commands[i]...), nil
	}, func(i int, r resp.Reply) error {
		reply(i, r)
		return nil
	})
	if err != nil {
		r.Close()
		if ctx.Err() == nil && !remote.IsLost(err) {
			err = &remote.LostError{Err: err}
		}
	}
	return err
}

// insertInput puts the standard input into a command: as the last argument, or in the place of those that are the tag.
// An argument must be the tag as a whole. As in redis-cli the input is taken as it is, with the line end that echo
// writes.
func insertInput(args [][]byte, tag string, data []byte) ([][]byte, error) {
	if tag == "" {
		return append(args, data), nil
	}
	found := false
	for i, arg := range args {
		if string(arg) == tag {
			args[i], found = data, true
		}
	}
	if !found {
		return nil, usagef("-X %s: no argument is %s", tag, tag)
	}
	return args, nil
}

// isNoReply says why a command cannot be one of many: it has not one reply. Replies are assigned to commands by their
// order, so one too few or too many would make all that follow wrong.
func isNoReply(args [][]byte) error {
	name := strings.ToUpper(string(args[0]))
	switch {
	case strings.HasSuffix(name, "SUBSCRIBE"), name == "MONITOR", name == "SYNC", name == "PSYNC",
		name == "CLIENT" && len(args) > 1 && strings.EqualFold(string(args[1]), "REPLY"):
		return fmt.Errorf("%s has not one reply, so --pipe does not take it", name)
	}
	return nil
}
