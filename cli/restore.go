package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
)

// A restore is a backup of a backup, after a check of all of it: what is damaged is not brought into use, and the
// backup stays as it is for the next time. It is never made over a store: the damaged one may be the only one that has
// what the backup has not.

// restoreCommand describes stave restore. It has two arguments, with --archive one, and no --dir or default: where a store is made again
// must be said. Its status is 4 for a backup that is damaged.
func restoreCommand(t *terminal.Streams, p *Program) *cli.Command {
	return &cli.Command{
		Name: "restore",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "archive", Usage: "restore from the archive in `DIR`, which stave serve --archive makes"},
			&cli.StringFlag{Name: "to", Usage: "restore this moment of an archive: a sequence number, or a time", DefaultText: "the newest"},
			&cli.StringFlag{Name: "store", Usage: "restore the store with this `ID`, if the archive has moments of several"},
			&cli.BoolFlag{Name: "list", Usage: "list the moments of an archive that can be restored"},
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
			quietFlag(),
		},
		Action: func(c *cli.Context) error {
			from := c.String("archive")
			switch {
			case from == "" && (c.Bool("list") || c.IsSet("to") || c.IsSet("store")):
				return usagef("--list, --to and --store are of an archive: name it with --archive")
			case from != "" && c.Bool("list") && (c.NArg() > 0 || c.IsSet("to") || c.IsSet("store")):
				return usagef("restore --list takes --archive alone")
			case from != "" && c.Bool("list"):
				return runListMoments(t, p, from, c.Bool("json"))
			case from != "" && (c.NArg() != 1 || c.Args().Get(0) == ""):
				return usagef("restore --archive takes the directory of the new store")
			case from != "":
				return runRestoreMoment(t, p, wantedMoment{from, c.String("to"), c.String("store"), c.Args().Get(0)}, c.Bool("json"), c.Bool("quiet"))
			}
			if c.NArg() != 2 || c.Args().Get(0) == "" || c.Args().Get(1) == "" {
				return usagef("restore takes a backup, which is a directory or an archive, and the directory of the new store")
			}
			return runRestore(t, c.Args().Get(0), c.Args().Get(1), c.Bool("json"), c.Bool("quiet"))
		},
	}
}

// runRestore checks and copies. Interrupted, it leaves nothing at the new place. "-" and a regular file are archives,
// all else is a directory, which has the words for what is not there. The count of keys is that of the check.
func runRestore(t *terminal.Streams, from, out string, asJSON, quiet bool) (err error) {
	if out, err = placeOutside(out, from); err != nil {
		return fmt.Errorf("restore %s: %w", from, err)
	}
	ctx, stop := t.Interruptible()
	defer stop()
	r := &restore{t: t, from: from, out: out, bar: t.Progress(asJSON || quiet, "open", logBytes(from))}
	defer r.bar.Clear()
	started := time.Now()
	info, err := os.Stat(from)
	if from == "-" || err == nil && info.Mode().IsRegular() {
		err = r.archive(ctx)
	} else {
		err = r.directory(ctx)
	}
	r.bar.Clear()
	// An interrupt that came when all was done is none.
	if ctx.Err() != nil && err != nil {
		t.Complain(errors.New("interrupted; nothing was restored"))
		return err
	}
	if err != nil {
		return err
	}
	took, result := time.Since(started), r.result
	return report(t.Out, asJSON, quiet, backupReport{result, took}, fmt.Sprintf("restored %s in %s, all verified: linked %d (%s), copied %d (%s)", humanize.Plural(int64(r.keys), "key"), humanize.Duration(took.Round(time.Microsecond)),
		result.Linked, humanize.Size(result.BytesLinked), result.Copied, humanize.Size(result.BytesCopied)))
}

// A restore is one run of the command. keys and result are set when it has succeeded; of an archive all segments count
// as copied.
type restore struct {
	t         *terminal.Streams
	from, out string
	bar       *terminal.Progress
	keys      int
	result    bitcask.BackupResult
}

// failed words an error of the restore itself: with the place that was read, for the new one is what the person has
// just typed. nil stays nil.
func (r *restore) failed(status int, err error) error {
	if err == nil {
		return nil
	}
	return failed(status, fmt.Errorf("restore %s: %w", r.from, err))
}

// directory restores the backup in a directory. The same opened store is checked and copied, so the copy has the state
// that was checked.
func (r *restore) directory(ctx context.Context) (err error) {
	store, first, findings, err := r.check(ctx, r.from)
	if store == nil {
		return damage(r.t, err, false)
	}
	defer closeInto(&err, store.Close)
	if err != nil {
		return r.failed(exitCommand, err)
	}
	if findings > 0 {
		return r.failed(exitDamage, fmt.Errorf("%v; stave check %s lists all findings (%d), stave repair %s --out NEW copies what is left", first, r.from, findings, r.from))
	}
	r.bar.Next("copy", store.Stats().Bytes)
	r.result, err = store.Backup(ctx, r.out)
	return r.failed(exitCommand, err)
}

// check opens a copy for reading and checks all of it. The store is to be closed; it is nil if it could not be opened.
// It is opened without its INDEX, as stave check does: the copy's INDEX is checked against the log. findings is how
// many there are, of which first is one.
func (r *restore) check(ctx context.Context, dir string) (store *db.Store, first bitcask.Finding, findings int, err error) {
	store, err = openExisting(ctx, r.t, dir, seam.With(&db.Options{ReadOnly: true}, seam.Options{NoIndex: true, Read: r.bar.Add}))
	if err != nil {
		return nil, first, 0, err
	}
	r.bar.Next("check", bytesOfCheck(store))
	checked, err := store.Check(ctx, func(f bitcask.Finding) {
		if first == (bitcask.Finding{}) {
			first = f
		}
	})
	r.keys = checked.Keys
	return store, first, checked.Findings, err
}
