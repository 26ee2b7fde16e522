package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/cli/internal/transfer"
	"github.com/stavedb/stave/db"
)

// A key goes over as RESTORE REPLACE has it, with its deadline, in pipelines; what the Redis has besides stays. So an
// export that was interrupted can be repeated, and one that is repeated after the store has changed leaves keys there
// that the store no longer has. Package transfer does it.

// runRedisExport brings keys to a running Redis: those of the namespaces, or all if there are none. Each goes to the
// database of its namespace's number, unless the URL names one: then there must be one namespace to bring. Libraries of
// functions go along only with all of a store, since they belong to no namespace and no pattern matches them.
//
// With --keep-going keys that the Redis refuses are named and skipped, and the status is 5.
func runRedisExport(ctx context.Context, t *terminal.Streams, c *cli.Context, store *db.Store, namespaces []int) error {
	conn, database, err := openRemote(ctx, c.String("to"))
	if err != nil {
		return err
	}
	defer conn.Close()
	started, stats := time.Now(), store.Stats()
	bar := t.Progress(c.Bool("quiet"), "export", int64(stats.Keys))
	o := transfer.ExportOptions{Namespaces: namespaces, Libraries: len(namespaces) == 0 && c.String("match") == "", Database: database}
	o.Options = transferOptions(t, c, func(keys, bytes int64) { bar.Update(keys, bytes, keys) })
	// Only namespaces with keys are brought, so that a Redis with fewer databases does not refuse empty ones.
	if len(namespaces) == 0 {
		for _, ns := range stats.Namespaces {
			o.Namespaces = append(o.Namespaces, ns.Namespace)
		}
	}
	if database >= 0 && len(o.Namespaces) > 1 {
		return usagef("%q names one database and the store has keys in several namespaces: --db chooses one", c.String("to"))
	}
	r, err := transfer.Export(ctx, store, conn, o)
	bar.Clear()
	switch {
	case ctx.Err() != nil:
		t.Complain(fmt.Errorf("interrupted after %s; an export may be repeated", humanize.Plural(r.Keys, "key")))
		return ctx.Err()
	case err != nil:
		return failed(statusOf(err), err)
	}
	text := fmt.Sprintf("exported %s%s (%s) in %s", humanize.Plural(r.Keys, "key"), librariesText(r.Libraries), humanize.Size(r.Bytes), humanize.Duration(time.Since(started)))
	if r.Skipped > 0 {
		text += fmt.Sprintf(", skipped %s", humanize.Plural(r.Skipped, "key"))
	}
	if err := report(t.Out, false, c.Bool("quiet"), nil, text); err != nil {
		return err
	}
	if r.Skipped > 0 {
		return &exitError{status: exitPartial}
	}
	return nil
}
