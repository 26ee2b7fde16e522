package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
)

// An export to a running Redis: RESTORE makes each key there, in the place of what it had, with its deadline. A page of
// keys is on its way at a time.

// An exporter is an export under way. It keeps no state: what was brought is known by the keys that the Redis has.
type exporter struct {
	link
	o       ExportOptions
	started time.Time
	Result
}

// Export brings the keys of a store to a server. It may be repeated. The store is usually one that is open for reading,
// and so stays at one moment; of one that is written to, each key is as it was when it was sent.
func Export(ctx context.Context, store *db.Store, conn *remote.Conn, o ExportOptions) (Result, error) {
	ex := &exporter{link: link{conn}, o: o, started: time.Now()}
	var err error
	if o.Libraries {
		err = ex.functions(ctx, store)
	}
	for _, ns := range o.Namespaces {
		if err != nil {
			break
		}
		database := ns
		if o.Database >= 0 {
			database = o.Database
		}
		err = ex.namespace(ctx, store, ns, database)
	}
	return ex.Result, err
}

// skip counts and names what the other side refused, or ends the export, with a word on how to go on.
func (ex *exporter) skip(why error) error {
	return ex.o.skip(&ex.Result, why, errors.Join(why, errors.New("--keep-going skips such keys")))
}

// functions brings the libraries of functions. A Redis before 7 does not know them: that is told as for a key which it
// refuses.
func (ex *exporter) functions(ctx context.Context, store *db.Store) error {
	libraries, err := serverside.DB.Libraries(store)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		r, err := ex.Ask(ctx, "FUNCTION", "LOAD", "REPLACE", libraries[name])
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return &remote.LostError{Err: err}
		case !r.IsError():
			ex.Libraries++
		default:
			if err := ex.skip(fmt.Errorf("library %s: %w", humanize.Name(name, 60), r.Err())); err != nil {
				return err
			}
		}
	}
	return nil
}

// namespace brings the keys of one namespace. The Redis must have that database: a SELECT that it refuses ends the
// export.
func (ex *exporter) namespace(ctx context.Context, whole *db.Store, ns, database int) error {
	store, err := whole.Use(ns)
	if err != nil {
		return err
	}
	if _, err := ex.Call(ctx, "SELECT", fmt.Sprint(database)); err != nil {
		return err
	}
	for cursor := uint64(0); ; {
		page, next, err := store.Keyspace().Scan(cursor, db.KeyScanOptions{Match: ex.o.Match, Count: pageKeys})
		if err != nil {
			return err
		}
		if len(page) > 0 {
			if err := ex.page(ctx, store, page); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
		if err := ex.o.pace(ctx, ex.started, &ex.Result); err != nil {
			return err
		}
	}
}

// page brings a page of keys. A key that has expired by now is not sent: PING takes its place, so that replies and keys
// agree. Values are dumped by the goroutine that sends, one at a time, so a page takes no more memory than what the
// connection buffers. Refusals are dealt with when all replies are here.
func (ex *exporter) page(ctx context.Context, store *db.Store, page []db.KeyInfo) error {
	// How many bytes each key took, to be counted when the other side has taken it.
	sent := make([]int, len(page))
	var local error // of the store: the sender's goroutine sets it, and has ended when it is read
	command := func(dst []byte, i int) ([]byte, error) {
		d, err := dumpOwn(store, page[i].Key)
		if err != nil {
			local = fmt.Errorf("key %s: %w", humanize.Name(page[i].Key, 60), err)
			return dst, local
		}
		if d.payload == nil {
			return resp.AppendCommandStrings(dst, "PING"), nil
		}
		sent[i] = len(d.payload)
		args := [][]byte{[]byte("RESTORE"), []byte(page[i].Key), []byte("0"), d.payload, []byte("REPLACE")}
		if d.deadline > 0 {
			args[2] = fmt.Append(nil, d.deadline)
			args = append(args, []byte("ABSTTL"))
		}
		return resp.AppendCommand(dst, args...), nil
	}
	var refused []error
	err := ex.Pipeline(ctx, len(page), command, func(i int, r resp.Reply) error {
		switch {
		case r.IsError():
			refused = append(refused, fmt.Errorf("key %s: %w", humanize.Name(page[i].Key, 60), r.Err()))
		case string(r.Text) != "PONG":
			ex.Keys, ex.Bytes = ex.Keys+1, ex.Bytes+int64(sent[i])
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case local != nil:
		return local
	case err != nil:
		return err
	}
	for _, why := range refused {
		if err := ex.skip(why); err != nil {
			return err
		}
	}
	return nil
}
