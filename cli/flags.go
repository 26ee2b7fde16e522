package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// The options that several commands share, each made in one place, so that --dir
// means the same and is described in the same words everywhere.

// flagsFirst lets options stand after arguments (stave merge D --dry-run), which the standard
// parser does not: it moves them to the front. The arguments of exec are the exception, because
// they are the store's, not ours: "stave exec ZADD board -1 ada". A "--" ends the options, as
// everywhere. Whether an option takes a value is read from the command's own list of options.
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
			if !takesValue(command, arg) {
				break
			}
			if i++; i == len(args) { // for the parser to refuse: "--" is no value for it
				return slices.Concat(args[:2], flags)
			}
			flags = append(flags, args[i])
		}
	}
	return slices.Concat(args[:2], flags, []string{"--"}, rest)
}

// takesValue reports whether the option's value is the next argument. "--name=value" is one
// argument: its name has the value in it, matches nothing, and so takes no second one.
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

// orDefault returns s, or the other string if s is empty.
func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// storeOptions say which store to use, and how to print its replies.
type storeOptions struct {
	dir      string
	addr     string
	user     string
	password string
	db       int
	resp3    bool
	sync     string
	format   format
}

// storeFlags are the options that shell and exec share. The password is not among them: see
// readStoreOptions.
func storeFlags() []cli.Flag {
	return []cli.Flag{
		dirFlag(),
		&cli.StringFlag{Name: "addr", Aliases: []string{"a"}, Usage: "talk to the server at `HOST:PORT` (or at a socket's path) instead of opening a store"},
		&cli.StringFlag{Name: "user", Usage: "authenticate as `NAME`; the password is taken from $STAVE_PASSWORD"},
		&cli.IntFlag{Name: "db", Aliases: []string{"n"}, Usage: "work in namespace `N`"},
		&cli.BoolFlag{Name: "resp3", Aliases: []string{"3"}, Usage: "use RESP3: maps, sets, doubles and booleans in replies"},
		syncFlag("interval"),
		&cli.BoolFlag{Name: "raw", Usage: "print bare values, as is done when the output is not a terminal"},
		&cli.BoolFlag{Name: "no-raw", Usage: "print types and quotes, as is done on a terminal"},
		&cli.BoolFlag{Name: "json", Usage: "print each reply as one line of JSON"},
	}
}

// dirFlag is how commands name the store they open.
func dirFlag() cli.Flag {
	return &cli.StringFlag{Name: "dir", Aliases: []string{"d"}, DefaultText: "$STAVE_DIR or " + defaultDir, Usage: "open the store in directory `DIR`"}
}

// chosenDir is the directory that dirFlag names, or the default. The option wins over the variable.
func chosenDir(c *cli.Context) string {
	return orDefault(c.String("dir"), orDefault(os.Getenv("STAVE_DIR"), defaultDir))
}

// syncFlag is how commands that write say when the disk has to follow. Each command has its own
// default: what a person types is synced soon, an import once at its end.
func syncFlag(value string) cli.Flag {
	return &cli.StringFlag{Name: "sync", Value: value, Usage: "flush to the disk: `MODE` is always (before each reply), interval (every second) or none"}
}

// readStoreOptions checks and collects what storeFlags defines. What contradicts itself is refused
// and not ordered by precedence: a --dir that is ignored would be a surprise. The password has no
// option, since a command line is seen by every user of the machine.
func readStoreOptions(t *terminal, c *cli.Context) (storeOptions, error) {
	o := storeOptions{
		dir: chosenDir(c), addr: c.String("addr"), user: c.String("user"), password: os.Getenv("STAVE_PASSWORD"),
		db: c.Int("db"), resp3: c.Bool("resp3"), sync: c.String("sync"),
	}
	if o.addr != "" && (c.IsSet("sync") || c.IsSet("dir")) {
		return o, usagef("--addr talks to a server: it cannot go with --dir or --sync")
	}
	if o.addr == "" && o.user != "" {
		return o, usagef("--user needs --addr")
	}
	if o.db < 0 {
		return o, usagef("--db must not be negative")
	}
	chosen := 0
	for name, f := range map[string]format{"raw": formatRaw, "no-raw": formatTyped, "json": formatJSON} {
		if c.Bool(name) {
			chosen++
			o.format = f
		}
	}
	if chosen > 1 {
		return o, usagef("--raw, --no-raw and --json exclude each other")
	}
	if chosen == 0 {
		o.format = defaultFormat(t)
	}
	return o, nil
}

// defaultFormat is for people on a terminal and for programs elsewhere. It is decided by the output
// alone: "stave exec ... | less" is for a program as far as one can know.
func defaultFormat(t *terminal) format {
	if t.outTTY {
		return formatTyped
	}
	return formatRaw
}

// quietFlag silences whatever is not a result or an error.
func quietFlag() cli.Flag {
	return &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing but results and errors"}
}

// onDir makes the action of an offline tool, which works on the directory that it is given, or on
// the default one.
func onDir(run func(c *cli.Context, dir string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.NArg() > 1 {
			return usagef("%s takes one directory", c.Command.Name)
		}
		return run(c, orDefault(c.Args().First(), orDefault(os.Getenv("STAVE_DIR"), defaultDir)))
	}
}
