package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask/archive"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/server"
)

// The program's entrance: Run, the list of commands, and the reply to an unknown command. Each
// command has a file by its own name, with its flags next to its code, and its help in help/NAME.txt
// (help.go); testdata/help.txt has all of it as it is printed.
//
// urfave/cli parses the command line. Two of its habits are not ours: it takes options only before
// arguments (see flagsFirst), and it prints errors and ends the process by itself, which
// ExitErrHandler and OnUsageError prevent. Run must return, or no test could call it.

// defaultDir is the store that commands use when none is named, by --dir, an argument or $STAVE_DIR. It is relative:
// each directory one works in may have its own.
const defaultDir = "stave-data"

// A Program is stave with what a program that is built of it adds.
type Program struct {
	// Archives open archives that are no directories, by the scheme of their URL: "s3" for s3://bucket/prefix. They contact
	// nothing: an archive that does not answer must not keep a server from its start.
	Archives map[string]func(url string) (archive.Store, error)
	// Commands are commands besides those of stave.
	Commands []*cli.Command
	// ServeFlags are options of serve besides its own, and Serve says what they mean; nil if there are none. It is called when the
	// settings are known, and opens nothing: an error is one of usage. An option that only asks whether all is right gets
	// no further.
	ServeFlags []cli.Flag
	Serve      func(c *cli.Context, config *server.Config) (Join, error)
}

// Join prepares what runs alongside a server. It is called when the store and the sockets are open, and may change the options of the
// server, which is made after it. Then run is called, once, and closes what Join has opened when ctx ends. If it returns
// before that, the server ends too.
type Join func(o *server.Options, listening []net.Addr) (run func(ctx context.Context) error, err error)

// Run runs stave itself.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return new(Program).Run(args, stdin, stdout, stderr)
}

// Run runs the program with args (args[0] is its name) and returns its exit status. Only the
// interactive shell needs the streams to be files. An error is printed once, here, unless it is an
// exitError without a text. Of several errors that are joined the first with a status decides it,
// and all are printed, in one line.
func (p *Program) Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := terminal.Open(stdin, stdout, stderr)
	app := p.newApp(t)
	return exitStatus(t, app, app.Run(flagsFirst(app, args)))
}

// exitStatus prints an error, and returns the status that it stands for. Of an interrupt the command has told what
// there is to say, but what went wrong besides, such as closing a store that was written to, is reported here. An error
// without an exitError can only come from the parser of the command line, so its status is that of wrong usage:
// whatever a command returns must have gone through failed or usagef.
func exitStatus(t *terminal.Streams, app *cli.App, err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, context.Canceled) {
		if err = notCanceled(err); err != nil {
			t.Complain(err)
		}
		return exitInterrupted
	}
	exit, ok := errors.AsType[*exitError](err)
	if !ok { // the command-line parser's own errors
		if topic, unknown := strings.CutPrefix(err.Error(), "No help topic for "); unknown {
			name := strings.Trim(topic, "'")
			err = fmt.Errorf("unknown command %q%s (see stave help)", name, suggestion(app, name))
		}
		exit = &exitError{status: exitUsage, err: err}
	}
	if exit.status == exitOpen && isDamage(err) {
		err = fmt.Errorf("%w; stave check DIR says how much is damaged, stave repair DIR --out NEW copies what is left", err)
	}
	if exit.err != nil || err != error(exit) { // the latter: something else went wrong as well
		t.Complain(err)
	}
	return exit.status
}

// newApp lists the commands. DisableDefaultText keeps "(default: false)" out of every option. The app is made anew for
// each Run, whose streams its commands hold. Without a command it is the shell, on the store of $STAVE_DIR or the
// default one.
func (p *Program) newApp(t *terminal.Streams) *cli.App {
	app := &cli.App{
		Name:           "stave",
		HelpName:       "stave",
		Version:        versionText(),
		Reader:         t.In,
		Writer:         t.Out,
		ErrWriter:      t.Err,
		OnUsageError:   func(c *cli.Context, err error, _ bool) error { return usageError("", c.App.Flags, err) },
		ExitErrHandler: func(*cli.Context, error) {},
		Commands: []*cli.Command{
			shellCommand(t), execCommand(t), cliCommand(t), serveCommand(t, p),
			importCommand(t), exportCommand(t),
			mergeCommand(t), checkCommand(t), repairCommand(t), backupCommand(t), archiveCommand(t, p), restoreCommand(t, p), statsCommand(t), inspectCommand(t), dumpCommand(t), tailCommand(t), orphansCommand(t),
			doctorCommand(t), topCommand(t), benchCommand(t),
			completionCommand(t), manCommand(t), versionCommand(t),
		},
	}
	own := len(app.Commands)
	app.Commands = slices.Concat(app.Commands, p.Commands)
	app.Usage, app.Description, _ = strings.Cut(strings.TrimSpace(helpText("stave", nil)), "\n\n")
	for i, c := range app.Commands {
		if i < own {
			describe(c)
		}
		c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return usageError(" "+c.Name, c.Flags, err) }
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
		return runShell(t, shellOptions{storeOptions: storeOptions{dir: cmp.Or(os.Getenv("STAVE_DIR"), defaultDir), format: terminal.DefaultFormat(t)}})
	}
	return app
}

// suggestion says what a misspelt command may have meant. A name of the store's own command table
// has precedence: "stave get" is a common slip.
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
