package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
)

// An export to a running Redis: RESTORE makes each key there, in the place of what it had, with its deadline. A page of keys is on its way at
// a time.

// A redisExport is one under way.
type redisExport struct {
	*terminal.Streams
	link      *redisLink
	bar       *terminal.Progress
	rate      int
	keepGoing bool
	started   time.Time
	keys      int64
	libraries int64
	bytes     int64
	skipped   int64
}

// runRedisExport brings keys to a running Redis.
func runRedisExport(ctx context.Context, t *terminal.Streams, c *cli.Context, store *db.Store, namespaces []int) error {
	link, only, err := openLink(ctx, c.String("to"))
	if err != nil {
		return err
	}
	defer link.close()
	ex := &redisExport{
		Streams: t, link: link, rate: c.Int("rate"), keepGoing: c.Bool("keep-going"), started: time.Now(),
		bar: t.Progress(c.Bool("quiet"), "export", int64(store.Stats().Keys)),
	}
	whole := len(namespaces) == 0
	if whole {
		for _, ns := range store.Stats().Namespaces {
			namespaces = append(namespaces, ns.Namespace)
		}
	}
	if only >= 0 && len(namespaces) > 1 {
		return usagef("%q names one database and the store has keys in several namespaces: --db chooses one", c.String("to"))
	}
	if whole && c.String("match") == "" {
		err = ex.functions(ctx, store)
	}
	for _, ns := range namespaces {
		if err != nil {
			break
		}
		database := ns
		if only >= 0 {
			database = only
		}
		err = ex.namespace(ctx, store, ns, database, c.String("match"))
	}
	ex.bar.Clear()
	switch {
	case ctx.Err() != nil:
		t.Complain(fmt.Errorf("interrupted after %s; an export may be repeated", humanize.Plural(ex.keys, "key")))
		return ctx.Err()
	case err != nil:
		return err
	}
	if !c.Bool("quiet") {
		text := fmt.Sprintf("exported %s%s (%s) in %s", humanize.Plural(ex.keys, "key"), librariesText(ex.libraries), humanize.Size(ex.bytes), humanize.Duration(time.Since(ex.started)))
		if ex.skipped > 0 {
			text += fmt.Sprintf(", skipped %s", humanize.Plural(ex.skipped, "key"))
		}
		if _, err := fmt.Fprintln(t.Out, text); err != nil {
			return failed(exitCommand, err)
		}
	}
	if ex.skipped > 0 {
		return &exitError{status: exitPartial}
	}
	return nil
}

// functions brings the libraries of functions. A Redis before 7 does not know them: that is told as for a key which it refuses.
func (ex *redisExport) functions(ctx context.Context, store *db.Store) error {
	libraries, err := store.Libraries()
	if err != nil {
		return failed(exitCommand, err)
	}
	for _, name := range slices.Sorted(maps.Keys(libraries)) {
		r, err := ex.link.ask(ctx, "FUNCTION", "LOAD", "REPLACE", libraries[name])
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return failed(statusOf(err), &lostError{err})
		case !r.IsError():
			ex.libraries++
		default:
			if err := ex.skip(fmt.Errorf("library %s: %w", humanize.Name(name, 60), r.Err())); err != nil {
				return err
			}
		}
	}
	return nil
}

// skip names what the other side refused, and counts it; without --keep-going it ends the export.
func (ex *redisExport) skip(why error) error {
	if !ex.keepGoing {
		return failed(exitCommand, errors.Join(why, errors.New("--keep-going skips such keys")))
	}
	if ex.skipped++; ex.skipped <= maxComplaints {
		ex.bar.Clear()
		ex.Complain(why)
	}
	return nil
}

// namespace brings the keys of one namespace.
func (ex *redisExport) namespace(ctx context.Context, whole *db.Store, ns, database int, match string) error {
	store, err := whole.Use(ns)
	if err != nil {
		return failed(exitCommand, err)
	}
	if _, err := ex.link.call(ctx, "SELECT", fmt.Sprint(database)); err != nil {
		return failed(statusOf(err), err)
	}
	for cursor := uint64(0); ; {
		page, next, err := store.Keyspace().Scan(cursor, db.KeyScanOptions{Match: match, Count: redisPage})
		if err != nil {
			return failed(exitCommand, err)
		}
		if len(page) > 0 {
			if err := ex.page(ctx, store, page); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
		ex.bar.Update(ex.keys, ex.bytes, ex.keys)
		if ex.rate > 0 {
			due := ex.started.Add(time.Duration(float64(ex.keys) / float64(ex.rate) * float64(time.Second)))
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(due)):
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// page brings a page of keys. A key that has expired by now is not sent: PING takes its place, so that replies and keys agree.
func (ex *redisExport) page(ctx context.Context, store *db.Store, page []db.KeyInfo) error {
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
	err := ex.link.pipeline(ctx, len(page), command, func(i int, r resp.Reply) error {
		switch {
		case r.IsError():
			refused = append(refused, fmt.Errorf("key %s: %w", humanize.Name(page[i].Key, 60), r.Err()))
		case string(r.Text) != "PONG":
			ex.keys, ex.bytes = ex.keys+1, ex.bytes+int64(sent[i])
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case local != nil:
		return failed(exitCommand, local)
	case err != nil:
		return failed(statusOf(err), err)
	}
	for _, why := range refused {
		if err := ex.skip(why); err != nil {
			return err
		}
	}
	return nil
}
