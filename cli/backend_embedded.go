package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/command"
)

// The store of this very process. It is locked against other processes for as
// long as the shell is open.

// An embedded backend is a store opened by this process, spoken to through a
// session as a server would have it: the same commands, without a network.
//
// A command in it cannot be interrupted half-way, only before it starts, while it waits, or while it takes long and has
// changed nothing: see server.Session.DoContext.
//
// A store that is not there is not made before it must be: commands run in a store in memory (begin is set then) until
// the first that is not refused, which is run again in the real one. So a script whose first line has a slip leaves no
// directory behind.
type embedded struct {
	store   *db.Store
	session *server.Session
	begin   func(context.Context) (*embedded, error) // makes the store, which is one in memory by now; nil: it is there
}

// openEmbedded opens the store for a shell. HELLO and SELECT run before the first command, so an
// option that the store refuses is an error of opening. The store is closed then: its lock must not
// outlive the failure.
func openEmbedded(ctx context.Context, t *terminal.Streams, o storeOptions) (*embedded, error) {
	var begin func(context.Context) (*embedded, error)
	if o.late && !o.readOnly {
		o.late = false
		holds, err := holdsStore(o.dir)
		if err != nil {
			return nil, err
		}
		if real := o; !holds {
			begin = func(ctx context.Context) (*embedded, error) { return openEmbedded(ctx, t, real) }
			o.inMemory = true
		}
	}
	store, err := openFor(ctx, t, o)
	if err != nil {
		return nil, err
	}
	if _, err := store.Use(o.db); err != nil {
		return nil, errors.Join(usagef("--db %d: the store has no such namespace", o.db), store.Close())
	}
	session, err := server.NewSession(store, sessionOptions(o.dir))
	if err != nil {
		return nil, errors.Join(failed(exitOpen, err), store.Close())
	}
	e := &embedded{store: store, session: session}
	var greeting [][][]byte
	if o.resp3 {
		greeting = append(greeting, [][]byte{[]byte("HELLO"), []byte("3")})
	}
	if o.db != 0 {
		greeting = append(greeting, [][]byte{[]byte("SELECT"), []byte(strconv.Itoa(o.db))})
	}
	for _, command := range greeting {
		var refused error
		err := e.Do(ctx, command, func(r resp.Reply) { refused = r.Err() })
		if err := errors.Join(err, refused); err != nil {
			return nil, errors.Join(failed(exitOpen, fmt.Errorf("open %s: %w", o.dir, err)), e.Close())
		}
	}
	e.begin = begin // after the greeting, which is no reason to make the store
	return e, nil
}

// openFor opens the store for a session. One that only reads does not make a store, nor change it, and
// takes no lock: it runs alongside a server, and in a directory that it may not write to. It sees the
// state of the moment of opening, unless it follows the writer.
func openFor(ctx context.Context, t *terminal.Streams, o storeOptions) (*db.Store, error) {
	mode, err := syncMode(cmp.Or(o.sync, "interval"))
	switch {
	case err != nil:
		return nil, err
	case o.inMemory:
		store, err := db.OpenMemory(&db.Options{NoMerge: true})
		return store, openError(o.dir, err)
	case o.readOnly:
		return openExisting(ctx, t, o.dir, &db.Options{ReadOnly: true, Follow: o.follow})
	}
	return openOrMake(ctx, t, o.dir, &db.Options{Sync: mode, NoMerge: o.noMerge})
}

// sessionOptions is what INFO and CONFIG GET say about this process. The directory is absolute, as Redis shows it.
func sessionOptions(dir string) *server.Options {
	return &server.Options{Version: versionText(), Settings: map[string]string{"dir": absolute(dir)}}
}

// Do runs one command in the session. Its replies come as the bytes that a client would get, and
// are decoded again: that is the price of one path for both backends, and nothing besides what the
// store does. An interrupt undoes nothing that a command has done.
func (e *embedded) Do(ctx context.Context, args [][]byte, reply func(resp.Reply)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.begin != nil {
		if refused, err := e.try(ctx, args, reply); refused || err != nil {
			return err
		}
	}
	return e.do(ctx, args, reply)
}

// try runs a command in the store in memory. If it is refused there, that is all; otherwise the store is made, for the
// command to be run in it. One that may wait is not tried. A command that has an error for a reply and has written all
// the same, as a script that fails after its first write, counts as not refused. Replies of the run in memory are passed
// on only if there is no other run.
func (e *embedded) try(ctx context.Context, args [][]byte, reply func(resp.Reply)) (refused bool, err error) {
	if c, ok := lookupCommand(string(args[0])); !ok || c.Flags&command.Blocking == 0 && !listens(args) {
		var replies []resp.Reply
		before := e.store.Stats().Sequence
		err := e.do(ctx, args, func(r resp.Reply) {
			replies = append(replies, r)
			refused = refused || r.IsError()
		})
		if err != nil || refused && e.store.Stats().Sequence == before {
			for _, r := range replies {
				reply(r)
			}
			return true, err
		}
	}
	made, err := e.begin(ctx)
	if err != nil {
		return false, err
	}
	err = e.store.Close()
	*e = *made
	return false, err
}

// do runs a command in the session. Messages that have arrived for a subscriber come with the replies.
func (e *embedded) do(ctx context.Context, args [][]byte, reply func(resp.Reply)) error {
	rest := e.session.DoContext(ctx, args)
	for len(rest) > 0 {
		var r resp.Reply
		var err error
		if r, rest, err = resp.Decode(rest); err != nil {
			return fmt.Errorf("BUG: a reply that does not decode: %w", err)
		}
		reply(r)
	}
	if e.session.Closed() && !isQuit(args) {
		return errClosed
	}
	return nil
}

// errClosed means that the session broke off, which is a bug, such as a command that panicked: the server's session
// closes then, as a connection would be.
var errClosed = errors.New("the session is closed")

// isQuit reports the one command after which a closed session is no bug.
func isQuit(args [][]byte) bool { return strings.EqualFold(string(args[0]), "quit") }

// Close closes the store, which flushes it to the disk and releases its lock. The session needs no end of its own.
func (e *embedded) Close() error { return e.store.Close() }
