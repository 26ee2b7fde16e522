package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/stavedb/stave/cli/internal/execute"
	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/resp"
)

// What shell and exec have in common: a backend, a form in which replies are
// printed, and what the prompt must know. An error reply is an error here: exec
// prints it on the standard error and turns it into a status, while the shell
// shows it among the replies.

// A session is one conversation with a store, interactive or not. It is used by one goroutine. What
// the prompt shows is copied here, because a server does not say it. Out is exchanged while the replies
// of a line go to another program (pipeInto), so nothing else may keep it.
type session struct {
	*terminal.Streams
	backend backend
	printer terminal.Printer
	name    string // what the prompt calls the store
	db      int
	inMulti bool
	multiDB int    // db when MULTI was sent: DISCARD goes back to it
	closed  bool   // by QUIT
	noHints bool   // :set nohints
	timing  bool   // :set timing
	pager   string // reads long replies; "" for none

	editor   lineEditor // of an interactive session
	question string     // that the line which is read answers; "" for a command
}

// newSession opens the store or names the server. Servers are dialled here so that a wrong address
// is known at once. A server is not asked for anything beyond the greeting: it may be a Redis that
// allows little. The caller closes the backend, which gives up the store's lock. Errors have their
// status: 2 for files of TLS that cannot be read, 3 for what could not be opened or reached.
func newSession(ctx context.Context, t *terminal.Streams, o storeOptions) (*session, error) {
	s := &session{Streams: t, db: o.db, printer: terminal.Printer{Format: o.format, Color: t.Color()}}
	if o.addr == "" {
		e, err := openEmbedded(ctx, t, o)
		if err != nil {
			return nil, err
		}
		s.backend, s.name = e, storeName(o.dir)
		return s, nil
	}
	r := &remote.Conn{Addr: o.addr, User: o.user, Password: o.password, RESP3: o.resp3, DB: o.db}
	if o.useTLS {
		config, err := o.tls.Config(o.addr)
		if err != nil {
			return nil, usagef("%w", err)
		}
		r.TLS = config
	}
	if err := r.Connect(ctx); err != nil {
		return nil, failed(exitOpen, fmt.Errorf("connect: %w", err))
	}
	s.backend, s.name = r, o.addr
	return s, nil
}

// statusOf is the exit status for an error of a command. A connection that is lost has the status
// of one that could not be made, and so has a store that is made late.
func statusOf(err error) int {
	exit, isExit := errors.AsType[*exitError](err)
	switch {
	case isExit:
		return exit.status
	case remote.IsLost(err):
		return exitOpen
	}
	return exitCommand
}

// runCommand runs one command and prints its replies to out. An error reply is returned instead of
// being printed. HELP is answered here, so that exec and scripts have it too.
//
// An error within a reply, as of one command of an EXEC, is printed where it stands and returned as
// well: the status must say that something failed. Several errors are joined in their order. When out
// fails the command has been run all the same.
func (s *session) runCommand(ctx context.Context, out io.Writer, args [][]byte) error {
	if text, ok, err := s.help(args); ok || err != nil {
		if err == nil {
			_, err = io.WriteString(out, text)
		}
		return err
	}
	var first, writeErr error
	err := s.backend.Do(ctx, args, func(r resp.Reply) {
		s.track(args, r)
		if r.IsError() {
			first = errors.Join(first, r.Err())
			return
		}
		if err := execute.NestedError(args, r); err != nil && first == nil {
			first = err
		}
		if _, err := out.Write(s.render(args, r)); err != nil {
			writeErr = err
		}
	})
	return errors.Join(err, first, writeErr)
}

// render is the printed form of a reply to a command, which decides for some how an array is to be read: pairs of
// HGETALL, for instance. args may be nil. Tables are cut to the screen's width only where a person reads them.
func (s *session) render(args [][]byte, r resp.Reply) []byte {
	s.printer.Width = 0
	if _, isFile := s.Out.(*os.File); isFile && s.OutTTY { // and not a program that reads what would be printed
		s.printer.Width = s.Width()
	}
	return s.printer.AppendTo(nil, args, r)
}

// track follows what commands do to the prompt: the namespace and MULTI. An embedded session is
// asked; a server has to be followed by its replies. A server's replies tell enough: OK to SELECT
// and MULTI, the result of EXEC, the error that says there was no transaction. What another program
// does to the same connection cannot be seen, but there is no other.
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
	case r.IsError(): // it has changed nothing
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

// selected notes the current namespace, also for a reconnect. A namespace that was selected within MULTI is noted at
// once, though the server selects it with EXEC: the prompt shows where the next command would be queued for.
func (s *session) selected(db int) {
	s.db = db
	if r, ok := s.backend.(*remote.Conn); ok {
		r.DB = db
	}
}

// lostState forgets what a new connection does not know about. The namespace from before MULTI is
// selected again on the new connection. What cannot be known is not guessed: a name that CLIENT SETNAME
// gave, WATCH and CLIENT TRACKING are gone. An embedded session loses nothing, and is asked again by the
// next command.
func (s *session) lostState() {
	if s.inMulti {
		s.selected(s.multiDB)
	}
	s.inMulti = false
}
