package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/cli/internal/terminal"
)

// The options that several commands share, each made in one place, so that --dir
// means the same and is described in the same words everywhere.

// flagsFirst lets options stand after arguments (stave merge D --dry-run), which the standard
// parser does not: it moves them to the front. The arguments of exec are the exception, because
// they are the store's, not ours: "stave exec ZADD board -1 ada". A "--" ends the options, as
// everywhere. Whether an option takes a value is read from the command's own list of options.
//
// The result has a "--" between options and arguments, so an argument that begins with a dash stays one. An option that
// is not known goes to the front alone, for the parser to complain of. args are not changed.
func flagsFirst(app *cli.App, args []string) []string {
	if len(args) < 3 {
		return args
	}
	command := app.Command(args[1])
	if command == nil || command.Name == "exec" {
		return args
	}
	// args[0] is the program, args[1] the command; options before the command are the library's to parse.
	var flags, rest []string
	for i := 2; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			rest = append(rest, args[i+1:]...)
			i = len(args)
		case arg == "-h" && (command.Name == "top" || command.Name == "cli") && i+1 < len(args): // as in redis-cli; these have no directory
			i++
			flags = append(flags, "--host", args[i])
		case arg == "--help" || arg == "-h":
			return []string{args[0], args[1], arg} // with arguments it would be about one of them
		case (len(arg) < 2 || arg[0] != '-') && command.Name == "cli": // from here on it is the store's, as with exec
			return slices.Concat(args[:2], flags, args[i:])
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
// argument: its name has the value in it, matches nothing, and so takes no second one. An option
// that the command does not know takes none either, so what follows it stays an argument.
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

// storeOptions say which store to use, and how to print its replies. Either addr or dir is used: a server if addr is
// set. readOnly and what follows, but for format, come of what the command is about to do.
type storeOptions struct {
	dir      string
	addr     string
	user     string
	password string
	useTLS   bool
	tls      remote.TLSFiles
	db       int
	resp3    bool
	sync     string
	readOnly bool // nothing will be written
	follow   bool // with readOnly: what is written by others is shown
	noMerge  bool // no merge in the background
	inMemory bool // a new store that is gone afterwards, in the place of that in dir
	late     bool // a store that is not there is made by the first command that is not refused
	format   terminal.Format
}

// storeFlags are the options that shell and exec share. The password is not among them: see
// readStoreOptions.
func storeFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		dirFlag(),
		&cli.StringFlag{Name: "addr", Aliases: []string{"a"}, Usage: "talk to the server at `HOST:PORT` (or at a socket's path) instead of opening a store"},
	}, sessionFlags(), []cli.Flag{syncFlag("interval")})
}

// sessionFlags are those of storeFlags that do not name a store, but for a URL and a connection, or are about servers
// alone.
func sessionFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		&cli.StringFlag{Name: "url", Aliases: []string{"u"}, Usage: "talk to the server at `URL`: redis://[USER[:PASSWORD]@]HOST[:PORT][/DB], rediss:// with TLS, or unix:///PATH"},
		&cli.StringFlag{Name: "connection", Aliases: []string{"c"}, Usage: "use the store, or the server, that the file of settings calls `NAME`"},
	}, authFlags(), []cli.Flag{
		&cli.IntFlag{Name: "db", Aliases: []string{"n"}, Usage: "work in namespace `N`"},
		&cli.BoolFlag{Name: "resp3", Aliases: []string{"3"}, Usage: "use RESP3: maps, sets, doubles and booleans in replies"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print replies in `FORM`: typed (as on a terminal), raw (as elsewhere), json, pretty, jsonl, csv or table"},
		&cli.BoolFlag{Name: "raw", Usage: "--output raw: bare values, as is done when the output is not a terminal"},
		&cli.BoolFlag{Name: "no-raw", Usage: "--output typed: types and quotes, as is done on a terminal"},
		&cli.BoolFlag{Name: "json", Usage: "--output json: each reply is one line of JSON"},
		&cli.BoolFlag{Name: "csv", Usage: "--output csv: each element is a row"},
	})
}

// authFlags say who the client of a server is, and how it verifies the server. The names are redis-cli's, but for the
// password, which has no option at all. An encrypted connection always verifies: there is no --insecure.
func authFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "user", Usage: "authenticate as `NAME`; the password is taken from $STAVE_PASSWORD, or $REDISCLI_AUTH"},
		&cli.BoolFlag{Name: "tls", Usage: "encrypt the connection to the server"},
		&cli.StringFlag{Name: "cacert", Usage: "verify the server by the certificates in `FILE`, instead of the system's"},
		&cli.StringFlag{Name: "cert", Usage: "show the server the certificate in `FILE`"},
		&cli.StringFlag{Name: "key", Usage: "whose key is in `FILE`"},
		&cli.StringFlag{Name: "sni", Usage: "verify that the server is `HOST`, instead of the host that was connected to"},
	}
}

// defaultPort is where a Stave listens.
const defaultPort = 6380

// hostFlags name a server as redis-cli does.
func hostFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "host", Value: "127.0.0.1", Usage: "the server is at `HOST` (also -h HOST)"},
		&cli.IntFlag{Name: "port", Aliases: []string{"p"}, Value: defaultPort, Usage: "and listens on `PORT`"},
	}
}

// dirFlag is how commands name the store they open. Tools take the directory as an argument too: see takeDir. The
// default is not the option's but chosenDir's, after the environment.
func dirFlag() cli.Flag {
	return &cli.StringFlag{Name: "dir", Aliases: []string{"d"}, DefaultText: "$STAVE_DIR or " + defaultDir, Usage: "open the store in directory `DIR`"}
}

// chosenDir is the directory that dirFlag names, or the default. The option wins over the variable; an empty one of
// either counts as not given.
func chosenDir(c *cli.Context) string {
	return cmp.Or(c.String("dir"), os.Getenv("STAVE_DIR"), defaultDir)
}

// syncFlag is how commands that write say when the disk has to follow. Each command has its own
// default: what a person types is synced soon, an import once at its end. Closing the store syncs in
// every mode.
func syncFlag(value string) cli.Flag {
	return &cli.StringFlag{Name: "sync", Value: value, Usage: "flush to the disk: `MODE` is always (before each reply), interval (every second) or none"}
}

// readStoreOptions checks and collects what storeFlags defines. What contradicts itself is refused
// and not ordered by precedence: a --dir that is ignored would be a surprise. The password has no
// option, since a command line is seen by every user of the machine.
func readStoreOptions(t *terminal.Streams, c *cli.Context) (storeOptions, error) {
	o := storeOptions{
		dir: chosenDir(c), addr: c.String("addr"), user: c.String("user"), password: serverPassword(),
		useTLS: c.Bool("tls"), tls: remote.TLSFiles{CACert: c.String("cacert"), Cert: c.String("cert"), Key: c.String("key"), Name: c.String("sni")},
		db: c.Int("db"), resp3: c.Bool("resp3"), sync: c.String("sync"),
	}
	if err := o.takeTarget(c); err != nil {
		return o, err
	}
	o.addr = withPort(o.addr, strconv.Itoa(defaultPort))
	if o.addr != "" && (c.IsSet("sync") || c.IsSet("dir")) {
		return o, usagef("--addr talks to a server: it cannot go with --dir or --sync")
	}
	if o.addr == "" && o.user != "" {
		return o, usagef("--user needs --addr")
	}
	if o.useTLS && o.addr == "" || o.tls != (remote.TLSFiles{}) && !o.useTLS {
		return o, usagef("--tls needs --addr, and --cacert, --cert, --key and --sni need --tls")
	}
	if o.db < 0 {
		return o, usagef("--db must not be negative")
	}
	var err error
	o.format, err = chosenFormat(t, c)
	return o, err
}

// withPort adds a port to an address of --addr that is a host alone: a name, or an IP address. Everything else is left as
// it is, also what is neither: whoever uses it says what is wrong.
func withPort(addr, port string) string {
	host := strings.TrimSuffix(strings.TrimPrefix(addr, "["), "]")
	switch {
	case addr == "" || strings.Contains(addr, "/") || strings.Trim(addr, "0123456789") == "":
		return addr
	case !strings.Contains(host, ":") || net.ParseIP(host) != nil:
		return net.JoinHostPort(host, port)
	}
	return addr
}

// serverPassword is from the environment: what a command line has is seen by every user of the machine. Stave's own
// variable wins over redis-cli's.
func serverPassword() string { return cmp.Or(os.Getenv("STAVE_PASSWORD"), os.Getenv("REDISCLI_AUTH")) }

// takeTarget takes the server that --url, or --host and --port name, or what --connection does. Two of these are an
// error, and so is one of them with --addr or --dir: which would win could only be guessed. The default of --host,
// where there is that option, gives way to all of them.
func (o *storeOptions) takeTarget(c *cli.Context) error {
	if socket := c.String("socket"); socket != "" {
		o.addr = absolute(socket)
	}
	target, name, host := c.String("url"), c.String("connection"), c.IsSet("host") || c.IsSet("port")
	// --dir counts only with --connection here: with a server it has an error of its own.
	named := 0
	for _, is := range []bool{o.addr != "", target != "", name != "", host, name != "" && c.IsSet("dir")} {
		if is {
			named++
		}
	}
	switch {
	case named > 1:
		return usagef("--dir, --addr, --url, --connection, and --host with --port, exclude each other")
	case name != "":
		var err error
		if target, err = connectionNamed(name); err != nil {
			return err
		}
		if !strings.Contains(target, "://") {
			o.dir = target
			return nil
		}
	case o.addr == "" && target == "" && c.String("host") != "": // which has a default where it is an option
		o.addr = net.JoinHostPort(c.String("host"), strconv.Itoa(c.Int("port")))
	}
	if target == "" {
		return nil
	}
	return o.takeURL(c, target)
}

// takeURL takes the server, the user, the password, TLS and the database from a URL. What it does not say is as without
// it. A password in the URL wins over the environment's; --db wins over the URL's database.
func (o *storeOptions) takeURL(c *cli.Context, target string) error {
	r, database, err := remote.ParseURL(target, serverPassword())
	if err != nil {
		return failed(exitUsage, err)
	}
	o.addr, o.user, o.password, o.useTLS = r.Addr, cmp.Or(r.User, o.user), r.Password, o.useTLS || r.TLS != nil
	if database >= 0 && !c.IsSet("db") {
		o.db = database
	}
	return nil
}

// chosenFormat is the form of replies that the options name, or the one that suits the output: typed on a terminal and
// raw elsewhere, as redis-cli has it.
func chosenFormat(t *terminal.Streams, c *cli.Context) (terminal.Format, error) {
	f, chosen := terminal.DefaultFormat(t), 0
	if name := c.String("output"); name != "" {
		var ok bool
		if f, ok = terminal.ParseFormat(name); !ok {
			return f, usagef("--output %q: the forms are %s", name, terminal.FormatNames())
		}
		chosen++
	}
	// The short options are redis-cli's. Their order does not matter, for two of them are an error.
	for name, named := range map[string]terminal.Format{"raw": terminal.Raw, "no-raw": terminal.Typed, "json": terminal.JSON, "csv": terminal.CSV} {
		if c.Bool(name) {
			chosen++
			f = named
		}
	}
	if chosen > 1 {
		return f, usagef("--output, --raw, --no-raw, --json and --csv exclude each other")
	}
	return f, nil
}

// quietFlag silences whatever is not a result or an error.
func quietFlag() cli.Flag {
	return &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing but results and errors"}
}

// onDir makes the action of a tool, which works on the directory that it is given, as an argument or
// by --dir, or on the default one.
func onDir(run func(c *cli.Context, dir string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := takeDir(c, c.NArg()); err != nil {
			return err
		}
		return orDefault(c, run(c, chosenDir(c)))
	}
}

// orDefault says of a store that is not there that nobody has named it.
func orDefault(c *cli.Context, err error) error {
	if named := c.String("dir") + os.Getenv("STAVE_DIR"); named == "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w (%s is the default: name the store as an argument, by --dir or $STAVE_DIR)", err, defaultDir)
	}
	return err
}

// takeDir takes the first of n arguments, if there is one, for the value of --dir. More are an error. Afterwards
// chosenDir has the directory, however it was named.
func takeDir(c *cli.Context, n int) error {
	switch {
	case n > 1:
		return usagef("%s takes one directory", c.Command.Name)
	case n == 0:
		return nil
	case c.IsSet("dir"):
		return usagef("--dir and an argument both name the store: %q and %q", c.String("dir"), c.Args().First())
	case c.Args().First() == "":
		return usagef("the directory has no name")
	}
	return c.Set("dir", c.Args().First())
}

// usageError words an error of the command line's parser, which names options with one dash. The texts that it looks
// for are those of package flag; one that it does not know is passed on as it is. command is a blank and the command.
func usageError(command string, flags []cli.Flag, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		option := "--" + strings.TrimLeft(name, "-")
		if best := nearestOption(flags, strings.TrimLeft(name, "-")); best != "" {
			return usagef("unknown option %s: did you mean --%s? (see stave help%s)", option, best, command)
		}
		return usagef("unknown option %s (see stave help%s)", option, command)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return usagef("--%s needs a value (see stave help%s)", strings.TrimLeft(name, "-"), command)
	}
	text = strings.Replace(text, " for flag -", " for --", 1)
	return usagef("%s (see stave help)", strings.TrimSuffix(text, ": parse error"))
}

// nearestOption is the option whose name was probably meant: the one with the fewest slips, of which a name has one for
// each three letters at the most.
func nearestOption(flags []cli.Flag, name string) (best string) {
	least := len(name)/3 + 1
	for _, f := range flags {
		for _, other := range f.Names() {
			if n := slips(name, other); len(other) > 1 && n < least {
				best, least = other, n
			}
		}
	}
	return best
}

// slips is how many letters one has to leave out, add, replace, or exchange with the next one to come from a to b (the
// optimal string alignment distance).
func slips(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
