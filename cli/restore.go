package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
)

// A restore is a backup of a backup, after a check of all of it: what is damaged is not brought into use, and the backup stays as it is for
// the next time. It is never made over a store: the damaged one may be the only one that has what the backup has not.

// restoreCommand describes stave restore.
func restoreCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "Makes a store of a backup, after verifying all of it",
		ArgsUsage: "BACKUP NEW",
		UsageText: "stave restore BACKUP NEW [--json]",
		Description: `   stave restore /mnt/backups/tuesday data

Checks every record of the directory BACKUP, as stave check does, and makes a store
with its content in the directory NEW, which must be new or empty: no store is ever
written over. NEW has its name when all of it is on disk. BACKUP is not changed.
Full files are shared by hard links if both places are on one disk, and otherwise
copied. An archive that stave backup has written is extracted by tar.

The status is 0, 3 if BACKUP could not be opened, and 4 if it is damaged; then stave
repair BACKUP --out NEW copies what is left.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
			quietFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 || c.Args().Get(0) == "" || c.Args().Get(1) == "" {
				return usagef("restore takes the directory of a backup, and the new one")
			}
			return runRestore(t, c.Args().Get(0), c.Args().Get(1), c.Bool("json"), c.Bool("quiet"))
		},
	}
}

// runRestore checks and copies. Interrupted, it leaves nothing at the new place.
func runRestore(t *terminal.Streams, from, out string, asJSON, quiet bool) (err error) {
	if out, err = placeOutside(out, from); err != nil {
		return fmt.Errorf("restore %s: %w", from, err)
	}
	ctx, stop := t.Interruptible()
	defer stop()
	started := time.Now()
	bar := t.Progress(asJSON || quiet, "open", logBytes(from))
	defer bar.Clear()
	store, err := openExisting(ctx, t, from, seam.With(&db.Options{ReadOnly: true}, seam.Options{NoIndex: true, Read: bar.Add}))
	if err != nil {
		return damage(t, err, false)
	}
	defer closeInto(&err, store.Close)
	bar.Next("check", bytesOfCheck(store))
	var first bitcask.Finding
	checked, err := store.Check(ctx, func(f bitcask.Finding) {
		if first == (bitcask.Finding{}) {
			first = f
		}
	})
	if err == nil && checked.Findings > 0 {
		return failed(exitDamage, fmt.Errorf("restore %s: %v; stave check %s lists all findings (%d), stave repair %s --out NEW copies what is left", from, first, from, checked.Findings, from))
	}
	var result bitcask.BackupResult
	if err == nil {
		bar.Next("copy", 0)
		result, err = store.Backup(ctx, out)
	}
	bar.Clear()
	if ctx.Err() != nil && err != nil {
		t.Complain(errors.New("interrupted; nothing was restored"))
		return ctx.Err()
	}
	if err != nil {
		return failed(exitCommand, fmt.Errorf("restore %s: %w", from, err))
	}
	took := time.Since(started)
	switch {
	case asJSON:
		err = json.NewEncoder(t.Out).Encode(backupReport{result, took})
	case !quiet:
		_, err = fmt.Fprintf(t.Out, "restored %s in %s, all verified: linked %d (%s), copied %d (%s)\n", terminal.Plural(int64(checked.Keys), "key"), terminal.Duration(took.Round(time.Microsecond)),
			result.Linked, terminal.Size(result.BytesLinked), result.Copied, terminal.Size(result.BytesCopied))
	}
	return failed(exitCommand, err)
}
