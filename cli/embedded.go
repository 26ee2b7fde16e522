package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// An embedded backend is a store opened by this process, spoken to through a
// session as a server would have it: the same commands, without a network.
//
// A command in it cannot be interrupted half-way, only before it starts, or while it waits.
type embedded struct {
	store   *db.Store
	session *server.Session
}

// openEmbedded opens the store for a shell.
func openEmbedded(ctx context.Context, t *terminal, o storeOptions) (*embedded, error) {
	store, err := openStore(t, o.dir, orDefault(o.sync, "interval"))
	if err != nil {
		return nil, err
	}
	e := &embedded{store: store, session: server.NewSession(store, sessionOptions(o.dir))}
	var greeting [][][]byte
	if o.resp3 {
		greeting = append(greeting, [][]byte{[]byte("HELLO"), []byte("3")})
	}
	if o.db != 0 {
		greeting = append(greeting, [][]byte{[]byte("SELECT"), []byte(strconv.Itoa(o.db))})
	}
	for _, command := range greeting {
		var refused error
		err := e.do(ctx, command, func(r resp.Reply) { refused = r.Err() })
		if err := errors.Join(err, refused); err != nil {
			return nil, errors.Join(failed(exitOpen, fmt.Errorf("open %s: %w", o.dir, err)), e.close())
		}
	}
	return e, nil
}

// sessionOptions is what INFO and CONFIG GET say about this process.
func sessionOptions(dir string) *server.Options {
	return &server.Options{Version: versionText(), Settings: map[string]string{"dir": absolute(dir)}}
}

func absolute(dir string) string {
	if path, err := filepath.Abs(dir); err == nil {
		return path
	}
	return dir
}

// storeName is what the prompt calls a store.
func storeName(dir string) string { return filepath.Base(absolute(dir)) }

func (e *embedded) do(ctx context.Context, args [][]byte, reply func(resp.Reply)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
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

// errClosed means that the session broke off, which is a bug.
var errClosed = errors.New("the session is closed")

func isQuit(args [][]byte) bool { return strings.EqualFold(string(args[0]), "quit") }

func (e *embedded) close() error { return e.store.Close() }

// openStore opens the store in dir for reading and writing, and makes it if it
// is not there.
func openStore(t *terminal, dir, sync string) (*db.Store, error) {
	mode, err := syncMode(sync)
	if err != nil {
		return nil, err
	}
	return openTelling(t, dir, &db.Options{Sync: mode})
}

// openExisting opens a store that must be there.
func openExisting(t *terminal, dir string, o *db.Options) (*db.Store, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, openError(dir, err)
	}
	manifest, segments := false, false
	for _, entry := range entries {
		manifest = manifest || entry.Name() == "MANIFEST"
		segments = segments || filepath.Ext(entry.Name()) == ".data"
	}
	switch {
	case !manifest && segments:
		return nil, openError(dir, bitcask.ErrManifest)
	case !manifest:
		return nil, openError(dir, errors.New("there is no store in this directory"))
	}
	return openTelling(t, dir, o)
}

// openTelling opens a store. What recovery has truncated on the way is said on the standard error.
func openTelling(t *terminal, dir string, o *db.Options) (*db.Store, error) {
	store, err := db.Open(dir, o)
	if err != nil {
		return nil, openError(dir, err)
	}
	for _, r := range store.Log().Recovery().Truncated {
		if r.Kept != "" {
			t.complain(fmt.Errorf("%s: %v", dir, r))
		}
	}
	return store, nil
}

// syncMode reads the value of --sync.
func syncMode(name string) (db.SyncMode, error) {
	for _, mode := range []db.SyncMode{db.SyncInterval, db.SyncAlways, db.SyncNone} {
		if mode.String() == name {
			return mode, nil
		}
	}
	return 0, usagef("--sync must be always, interval or none, not %q", name)
}

// openError words why a store could not be opened: in one line, and with the
// process that has it if one does.
func openError(dir string, err error) error {
	if err == nil {
		return nil
	}
	locked, isLocked := errors.AsType[*vfs.LockedError](err)
	path, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case isLocked:
		err = fmt.Errorf("open %s: locked by %s", dir, orDefault(locked.Holder, "another process"))
	case errors.Is(err, bitcask.ErrLocked):
		err = fmt.Errorf("open %s: locked by another process", dir)
	case isPath && path.Path == dir:
		err = fmt.Errorf("open %s: %w", dir, path.Err)
	case !isOpening(err, dir):
		err = fmt.Errorf("open %s: %w", dir, err)
	}
	return failed(exitOpen, err)
}

// isOpening reports whether an error already says what was being opened.
func isOpening(err error, dir string) bool {
	prefix := "open " + dir + ":"
	text := err.Error()
	return len(text) > len(prefix) && text[:len(prefix)] == prefix
}
