package cli

import (
	"bufio"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"
)

// One command, or the lines of a script. The arguments after the first are the
// store's and not ours, whatever they look like: "stave exec ZADD board -1 ada"
// has no option -1.

// execCommand describes stave exec. Its examples are the three ways to give arguments: words, the
// standard input as the last one, and a script.
func execCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "exec",
		Usage:     "Runs one command, or a script from the standard input",
		UsageText: "stave exec [--dir DIR | --addr HOST:PORT] COMMAND [ARG...]\n" + "stave exec [--dir DIR | --addr HOST:PORT] < SCRIPT",
		Description: `The reply goes to the standard output; bare when that is not a terminal, with
types and quotes when it is. An error reply goes to the standard error, and the
status is then 1. Options stand before the command:

   stave exec --dir data SET greeting "hello world"
   stave exec --dir data GET greeting | tr a-z A-Z
   stave exec --addr 127.0.0.1:6380 ZADD board -1 ada

-x takes the last argument from the standard input, bytes as they are:

   stave exec -x SET picture < picture.png

Without a command, the standard input is run as a script; see stave help shell.`,
		Flags: append(storeFlags(),
			&cli.BoolFlag{Name: "stdin-arg", Aliases: []string{"x"}, Usage: "read the last argument from the standard input"},
			&cli.BoolFlag{Name: "keep-going", Aliases: []string{"k"}, Usage: "in a script, go on after an error; the status is 1 all the same"}),
		Action: func(c *cli.Context) error { return runExec(t, c) },
	}
}

// runExec runs the command of the arguments, or the script of the standard input if there is none.
// The standard input is read whole for -x, before the store is opened: a slow pipe does not hold
// the store's lock. The output is buffered, and its error counts, as that of a command does: a full
// disk after a redirection is not a success.
func runExec(t *terminal, c *cli.Context) (err error) {
	o, err := readStoreOptions(t, c)
	if err != nil {
		return err
	}
	var args [][]byte
	for _, arg := range c.Args().Slice() {
		args = append(args, []byte(arg))
	}
	switch {
	case len(args) == 0 && c.Bool("stdin-arg"):
		return usagef("-x needs a command to add an argument to")
	case len(args) == 0 && t.inTTY:
		return usagef("exec needs a command (stave shell is the interactive one)")
	case c.Bool("stdin-arg"):
		data, err := io.ReadAll(t.in)
		if err != nil {
			return failed(exitCommand, fmt.Errorf("stdin: %w", err))
		}
		args = append(args, data)
	}
	// From here on there is a store or a connection to close, so every return goes through
	// closeInto.
	ctx, stop := t.interruptible()
	defer stop()
	s, err := newSession(ctx, t, o)
	if err != nil {
		return err
	}
	defer closeInto(&err, s.backend.close)
	if len(args) == 0 {
		return s.runScript(ctx, t.in, c.Bool("keep-going"))
	}
	out := bufio.NewWriterSize(t.out, 64<<10)
	err = s.runCommand(ctx, out, args)
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failed(statusOf(err), err)
}
