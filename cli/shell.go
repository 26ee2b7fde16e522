package cli

import (
	"github.com/urfave/cli/v2"
)

// The command itself; the conversation is in shell_loop.go.

// shellOptions are the options of the shell.
type shellOptions struct {
	storeOptions
	keepGoing bool
	quiet     bool
}

// shellCommand describes stave shell, which is also what stave does without a
// command.
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

// runShell talks to a person if there is one, and runs a script otherwise. Both streams must be
// terminals to be interactive: with the output redirected a prompt would end up in the file.
func runShell(t *terminal, o shellOptions) (err error) {
	ctx, stop := t.interruptible()
	defer stop()
	s, err := newSession(ctx, t, o.storeOptions)
	if err != nil {
		return err
	}
	defer closeInto(&err, s.backend.close)
	if !t.inTTY || !t.outTTY {
		return s.runScript(ctx, t.in, o.keepGoing)
	}
	stop() // from here on Ctrl-C is the shell's
	return s.interact(o)
}
