package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/stavedb/stave/internal/resp"
	"github.com/urfave/cli/v2"
)

// storeOptions say which store to talk to, and how to print what it says.
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

// storeFlags are the options that shell and exec share.
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

// chosenDir is the directory that dirFlag names, or the default.
func chosenDir(c *cli.Context) string {
	return orDefault(c.String("dir"), orDefault(os.Getenv("STAVE_DIR"), defaultDir))
}

// syncFlag is how commands that write say when the disk has to follow.
func syncFlag(value string) cli.Flag {
	return &cli.StringFlag{Name: "sync", Value: value, Usage: "flush to the disk: `MODE` is always (before each reply), interval (every second) or none"}
}

// readStoreOptions checks and collects what storeFlags defines.
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

// defaultFormat is for people on a terminal and for programs elsewhere.
func defaultFormat(t *terminal) format {
	if t.outTTY {
		return formatTyped
	}
	return formatRaw
}

// A session is one conversation with a store, interactive or not.
type session struct {
	*terminal
	backend backend
	printer printer
	name    string // what the prompt calls the store
	db      int
	inMulti bool
	multiDB int  // db when MULTI was sent: DISCARD goes back to it
	closed  bool // by QUIT
	noHints bool // :set nohints
}

// newSession opens the store or names the server. Servers are dialled here so
// that a wrong address is known at once.
func newSession(ctx context.Context, t *terminal, o storeOptions) (*session, error) {
	s := &session{terminal: t, db: o.db, printer: printer{format: o.format, color: t.color()}}
	if o.addr == "" {
		e, err := openEmbedded(ctx, t, o)
		if err != nil {
			return nil, err
		}
		s.backend, s.name = e, storeName(o.dir)
		return s, nil
	}
	r := &remote{addr: o.addr, user: o.user, password: o.password, resp3: o.resp3, db: o.db}
	if err := r.connect(ctx); err != nil {
		return nil, failed(exitOpen, fmt.Errorf("connect: %w", err))
	}
	s.backend, s.name = r, o.addr
	return s, nil
}

// statusOf is the exit status for an error of a command.
func statusOf(err error) int {
	if isLost(err) {
		return exitOpen
	}
	return exitCommand
}

// runCommand runs one command and prints its replies to out. An error reply is
// returned instead of being printed.
func (s *session) runCommand(ctx context.Context, out io.Writer, args [][]byte) error {
	if text, ok, err := s.help(args); ok || err != nil {
		if err == nil {
			_, err = io.WriteString(out, text)
		}
		return err
	}
	var first, writeErr error
	err := s.backend.do(ctx, args, func(r resp.Reply) {
		s.track(args, r)
		if r.IsError() {
			first = errors.Join(first, r.Err())
			return
		}
		if err := nestedError(args, r); err != nil && first == nil {
			first = err
		}
		if _, err := out.Write(s.printer.append(nil, r)); err != nil {
			writeErr = err
		}
	})
	return errors.Join(err, first, writeErr)
}

// nestedError finds the first error among the results of a transaction: EXEC
// succeeds even when a command within it does not.
func nestedError(args [][]byte, r resp.Reply) error {
	if !strings.EqualFold(string(args[0]), "exec") {
		return nil
	}
	for i, item := range r.Items {
		if item.IsError() {
			return fmt.Errorf("command %d of the transaction: %w", i+1, item.Err())
		}
	}
	return nil
}

// track follows what commands do to the prompt: the namespace and MULTI.
// An embedded session is asked; a server has to be followed by its replies.
func (s *session) track(args [][]byte, r resp.Reply) {
	name := strings.ToLower(string(args[0]))
	if e, ok := s.backend.(*embedded); ok {
		s.db, s.inMulti = e.session.Namespace(), e.session.InTransaction()
		s.closed = e.session.Closed()
		return
	}
	switch {
	case r.Kind == resp.Push:
	case name == "exec" || name == "discard":
		// After an error other than EXECABORT there was no transaction to end.
		aborted := r.IsError() && strings.HasPrefix(string(r.Text), "EXECABORT")
		if s.inMulti && (name == "discard" || r.Null || aborted) {
			s.selected(s.multiDB)
		}
		if !r.IsError() || aborted {
			s.inMulti = false
		}
	case r.IsError():
	case name == "multi":
		s.inMulti, s.multiDB = true, s.db
	case name == "select" && len(args) == 2:
		if n, err := strconv.Atoi(string(args[1])); err == nil {
			s.selected(n)
		}
	case name == "reset":
		s.inMulti = false
		s.selected(0)
	case name == "quit":
		s.closed = true
	}
}

// selected notes the current namespace, also for a reconnect.
func (s *session) selected(db int) {
	s.db = db
	if r, ok := s.backend.(*remote); ok {
		r.db = db
	}
}

// lostState forgets what a new connection does not know about.
func (s *session) lostState() {
	if s.inMulti {
		s.selected(s.multiDB)
	}
	s.inMulti = false
}

// prompt is what the interactive shell shows before a line.
func (s *session) prompt() string {
	text := fmt.Sprintf("%s[%d]", s.name, s.db)
	if s.inMulti {
		text += "(TX)"
	}
	return text + "> "
}
