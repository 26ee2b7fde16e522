package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
)

// The command itself; the conversation is in shell_loop.go. The other files shell_* have one part of it each: edit is
// the line editor's set-up, complete and hint look at a line that is being typed, help and examples are HELP, local and
// watch what no server knows, pager shows what is long. Only edit knows the library; the others work on text, so that
// tests need no terminal.

// shellOptions are the options of the shell. keepGoing is for a script on the standard input; a person's shell goes on
// after errors anyway. quiet leaves the greeting out.
type shellOptions struct {
	storeOptions
	keepGoing bool
	quiet     bool
}

// shellCommand describes stave shell, which is also what stave does without a
// command.
func shellCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "shell",
		Flags: append(storeFlags(),
			&cli.BoolFlag{Name: "read-only", Usage: "open the store for reading only, as it is at this moment"},
			&cli.BoolFlag{Name: "follow", Usage: "with --read-only: go on with what another process writes"},
			&cli.BoolFlag{Name: "keep-going", Aliases: []string{"k"}, Usage: "go on with the next line after an error; the status is 1 all the same"},
			quietFlag()),
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usagef("shell takes one directory; stave exec runs a single command")
			}
			if err := takeDir(c, c.NArg()); err != nil {
				return err
			}
			o, err := readStoreOptions(t, c)
			if err != nil {
				return err
			}
			o.readOnly, o.follow = c.Bool("read-only"), c.Bool("follow")
			switch {
			case o.follow && !o.readOnly:
				return usagef("--follow only reads: say --read-only as well")
			case o.readOnly && (o.addr != "" || c.IsSet("sync")):
				return usagef("--read-only is about a store that the shell opens: it cannot go with --addr or --sync")
			}
			return runShell(t, shellOptions{storeOptions: o, keepGoing: c.Bool("keep-going"), quiet: c.Bool("quiet")})
		},
	}
}

// runShell talks to a person if there is one, and runs a script otherwise. Both streams must be
// terminals to be interactive: with the output redirected a prompt would end up in the file.
// A script makes its store late, by its first command that is not refused; a person's shell makes
// and locks it at once, so that the prompt does not promise what cannot be had.
func runShell(t *terminal.Streams, o shellOptions) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	script := !t.InTTY || !t.OutTTY
	o.late = script
	s, err := newSession(ctx, t, o.storeOptions)
	if err != nil {
		return err
	}
	defer closeInto(&err, s.backend.Close)
	if script {
		return s.runScript(ctx, t.In, o.keepGoing)
	}
	stop() // from here on Ctrl-C is the shell's
	return s.interact(o)
}
