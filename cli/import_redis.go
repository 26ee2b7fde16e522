package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/fileimport"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/remote"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/cli/internal/transfer"
	"github.com/stavedb/stave/db"
)

// An import from a running Redis, or any server that knows SCAN and DUMP: package transfer does it, over one
// connection. The keys are those of no single moment: one that is changed meanwhile has its old or its new value, one
// that is made meanwhile may be missing. --verify tells what differs in the end.

// redisFlags are the options about a running Redis that import has.
func redisFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from", Usage: "import from the running Redis at `URL`: redis://HOST:PORT/DB"},
		&cli.StringFlag{Name: "match", Usage: "with --from: only keys that match the glob `PATTERN`"},
		&cli.IntFlag{Name: "rate", Usage: "with --from: at most `N` keys per second", DefaultText: "no limit"},
		&cli.StringFlag{Name: "state", Usage: "with --from: note the progress in `FILE`, and go on from there"},
		&cli.BoolFlag{Name: "verify", Usage: "with --from: import nothing, compare every key with the store"},
	}
}

// checkRedisFlags refuses options that have nothing to do with each other. It is asked with --from and without: an
// option about a Redis that is given with a file was meant for something.
func checkRedisFlags(c *cli.Context) error {
	if c.String("from") == "" {
		for _, name := range []string{"match", "rate", "state", "verify"} {
			if c.IsSet(name) {
				return usagef("--%s needs --from", name)
			}
		}
		return nil
	}
	switch {
	case c.IsSet("key-template"):
		return usagef("--key-template is for CSV, and --from for a running Redis")
	case c.Int("rate") < 0:
		return usagef("--rate must not be negative")
	case c.Bool("verify") && c.IsSet("state"):
		return usagef("--verify compares all keys: it has no --state")
	}
	return nil
}

// openRemote connects to the server that a URL names. The database is -1 if it names none: then an import takes all of
// them. A URL that is wrong is an error of usage, a server that does not answer one of opening.
func openRemote(ctx context.Context, url string) (*remote.Conn, int, error) {
	conn, database, err := remote.ParseURL(url, serverPassword())
	if err != nil {
		return nil, 0, failed(exitUsage, err)
	}
	if err := conn.Connect(ctx); err != nil {
		return nil, 0, failed(exitOpen, fmt.Errorf("connect: %w", err))
	}
	return conn, database, nil
}

// runRedisImport imports from a running Redis, or compares with it. The connection is made before the store, which a
// wrong address must not make. To compare, the store is opened for reading only, so a server may have it open
// meanwhile.
func runRedisImport(t *terminal.Streams, c *cli.Context, dir string) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	if err := checkRedisFlags(c); err != nil {
		return err
	}
	conn, database, err := openRemote(ctx, c.String("from"))
	if err != nil {
		return err
	}
	defer conn.Close()
	started, bar, o := time.Now(), t.Progress(c.Bool("quiet"), "import", 0), transfer.ImportOptions{Database: database, State: c.String("state")}
	o.Options = transferOptions(t, c, func(keys, bytes int64) { bar.Update(0, bytes, keys) })
	if c.IsSet("type") {
		o.Type = c.String("type")
	}
	// Import and Verify have one form, so that both read the server in the same way.
	var store *db.Store
	run := transfer.Import
	if c.Bool("verify") {
		run = transfer.Verify
		store, err = openExisting(ctx, t, dir, &db.Options{ReadOnly: true})
	} else {
		store, err = openStore(ctx, t, dir, c.String("sync"))
	}
	if err != nil {
		return err
	}
	r, err := run(ctx, store, conn, o)
	bar.Clear()
	// An interrupt closes the connection, so the transfer ends with an error of that.
	if ctx.Err() != nil { // what the connection says of it is no news
		err = ctx.Err()
		hint := "; with --state FILE the next import would go on from there"
		if o.State != "" {
			hint = "; the next import with --state " + o.State + " goes on from there"
		}
		t.Complain(fmt.Errorf("interrupted after %s%s", humanize.Plural(r.Keys, "key"), hint))
	}
	// The store is closed before anything is reported: what it could not write was not imported.
	err = failed(statusOf(err), err)
	if closeInto(&err, store.Close); err != nil {
		return err
	}
	if c.Bool("verify") {
		return reportCompared(t, c, r, time.Since(started))
	}
	return reportImport(t, c, "redis", fileimport.Result{
		Keys: r.Keys, Libraries: r.Libraries, Expired: r.Expired, Skipped: r.Skipped, Bytes: r.Bytes, Seconds: time.Since(started).Seconds(), Unit: "key",
	})
}

// transferOptions are those that import and export have in common. Rate is in keys per second, 0 for no limit.
func transferOptions(t *terminal.Streams, c *cli.Context, progress func(keys, bytes int64)) transfer.Options {
	return transfer.Options{Match: c.String("match"), Rate: c.Int("rate"), KeepGoing: c.Bool("keep-going"), Warn: t.Complain, Progress: progress}
}

// reportCompared prints the result of --verify, and is an error if there are differences: status 5, as of an import
// that is not complete. The keys that differ were named on the standard error. Quiet says nothing if none does.
func reportCompared(t *terminal.Streams, c *cli.Context, r transfer.Result, took time.Duration) error {
	// A map, because the result of an import has members that mean nothing here.
	figures := map[string]int64{"keys": r.Keys, "different": r.Different}
	sentence := fmt.Sprintf("compared %s in %s: %d differ", humanize.Plural(r.Keys, "key"), humanize.Duration(took), r.Different)
	if err := report(t.Out, c.Bool("json"), c.Bool("quiet") && r.Different == 0, figures, sentence); err != nil {
		return err
	}
	if r.Different > 0 {
		return &exitError{status: exitPartial}
	}
	return nil
}
