package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/urfave/cli/v2"
)

// A backup is made by linking the files that never change again and copying the end of the one that
// does: it takes as long as that copy, however large the store, if both places are in one file
// system. The store is opened for reading only, so a server can keep it open and write to it. "-"
// writes an archive to the standard output instead, for another machine; then the sentences go to
// the standard error.

// A backup opens the store for reading only, which is possible alongside a server:
// the files that it links never change again, and the one that is still written
// to is copied as far as the last commit that is whole.

// backupCommand describes stave backup.
func backupCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "backup",
		Usage:     "Copies a store as of one moment, also while a server writes to it",
		ArgsUsage: "NEW",
		UsageText: "stave backup [--dir DIR] NEW [--json]",
		Description: `Makes a copy of the store in the directory NEW, which must be new or empty. It has
what had been acknowledged before, no half of any transaction, and is on disk when
the command ends. The store is opened for reading only: it may be in use.

The files of a store are never changed once they are full, so the copy shares them
by hard links and only copies what is still being written. On another file system
everything is copied. To guard against a disk that fails, take the copy to another
one: damage to a shared file is damage to both.

With - in the place of NEW the copy is written to standard output as a tar archive,
which extracted into an empty directory is the same store.

The copy is a store of its own, to be served or opened like any other. stave check
verifies all of it.`,
		Flags: []cli.Flag{
			dirFlag(),
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
			quietFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || c.Args().First() == "" {
				return usagef("backup takes one directory, the new one; --dir names the store")
			}
			if c.Args().First() == "-" && t.outTTY {
				return usagef("backup - writes an archive to standard output, which is a terminal")
			}
			return runBackup(t, chosenDir(c), c.Args().First(), c.Bool("json"), c.Bool("quiet"))
		},
	}
}

// A backupReport is what --json prints. The time is that of the whole command, the opening
// included.
type backupReport struct {
	bitcask.BackupResult
	Took time.Duration `json:"took_ns"`
}

// runBackup copies the store. Interrupted, it leaves nothing at the new place: package bitcask
// gives the copy its name when all of it is on disk. The copy has the state of the moment at which
// the store was opened here.
func runBackup(t *terminal, dir, out string, asJSON, quiet bool) (err error) {
	ctx, stop := t.interruptible()
	defer stop()
	started := time.Now()
	store, err := openExisting(t, dir, &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	// With "-" the standard output is the archive: a sentence in it would damage it.
	sentences := t.out
	var result bitcask.BackupResult
	if out == "-" {
		sentences = t.err
		result, err = store.BackupTo(ctx, t.out)
	} else {
		result, err = store.Backup(ctx, out)
	}
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	if err != nil {
		return failed(exitCommand, err)
	}
	report := backupReport{result, time.Since(started)}
	switch {
	case asJSON:
		err = json.NewEncoder(sentences).Encode(report)
	case !quiet:
		_, err = fmt.Fprintln(sentences, backupSentence(report))
	}
	return failed(exitCommand, err)
}

// backupSentence is what a backup ends with. Linked segments take no space of their own until one
// of the two stores merges them.
func backupSentence(r backupReport) string {
	return fmt.Sprintf("backed up %s in %s: linked %d (%s), copied %d (%s)", plural(r.Segments, "segment"), durationText(r.Took.Round(time.Microsecond)),
		r.Linked, sizeText(r.BytesLinked), r.Copied, sizeText(r.BytesCopied))
}
