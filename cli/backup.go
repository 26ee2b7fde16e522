package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
)

// A backup is made by linking the files that never change again and copying the end of the one that
// does: it takes as long as that copy, however large the store, if both places are in one file
// system. The store is opened for reading only, so a server can keep it open and write to it. "-"
// writes an archive to the standard output instead, for another machine; then the sentences go to
// the standard error.

// backupCommand describes stave backup. Its arguments are the store, which --dir or the default may name instead, and
// the new place, in the order of cp. The statuses: 1 if the copy could not be made, 3 if the store could not be opened.
func backupCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "backup",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.StringFlag{Name: "incremental", Aliases: []string{"i"}, Usage: "share with the earlier backup `OLD` what it has"},
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
			quietFlag(),
		},
		Action: func(c *cli.Context) error {
			out := ""
			if n := c.NArg(); n > 0 {
				out = c.Args().Get(n - 1)
			}
			if out == "" {
				return usagef("backup takes a directory, the new one, and before it that of the store, unless --dir names it")
			}
			// The last argument is the new place, so the store's directory is the first of two.
			if err := takeDir(c, c.NArg()-1); err != nil {
				return err
			}
			if out == "-" && t.OutTTY {
				return usagef("backup - writes an archive to standard output, which is a terminal")
			}
			if out == "-" && c.String("incremental") != "" {
				return usagef("an archive has all of the store: --incremental needs a directory")
			}
			err := runBackup(t, chosenDir(c), out, c.String("incremental"), c.Bool("json"), c.Bool("quiet"))
			if c.NArg() == 1 && c.String("dir")+os.Getenv("STAVE_DIR") == "" && errors.Is(err, fs.ErrNotExist) {
				return usagef("backup takes two directories, STORE NEW: the only one here is the new one, and the store by default, %s, is not there", defaultDir)
			}
			return err
		},
	}
}

// A backupReport is what --json prints. The time is that of the whole command, the opening
// included. restore prints one too: the members mean the same there.
type backupReport struct {
	bitcask.BackupResult
	Took time.Duration `json:"took_ns"`
}

// runBackup copies the store. Interrupted, it leaves nothing at the new place: package bitcask
// gives the copy its name when all of it is on disk. The copy has the state of the moment at which
// the store was opened here.
func runBackup(t *terminal.Streams, dir, out, earlier string, asJSON, quiet bool) (err error) {
	if out != "-" {
		old := []string{dir}
		if earlier != "" {
			old = append(old, earlier)
		}
		if out, err = placeOutside(out, old...); err != nil {
			return fmt.Errorf("backup %s: %w", dir, err)
		}
	}
	ctx, stop := t.Interruptible()
	defer stop()
	started := time.Now()
	bar := t.Progress(asJSON || quiet, "open", logBytes(dir))
	defer bar.Clear()
	store, err := openExisting(ctx, t, dir, seam.With(&db.Options{ReadOnly: true}, seam.Options{Read: bar.Add}))
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	// With "-" the standard output is the archive: a sentence in it would damage it.
	sentences := t.Out
	bar.Next("copy", store.Stats().Bytes)
	var result bitcask.BackupResult
	if out == "-" {
		sentences = t.Err
		result, err = store.BackupTo(ctx, t.Out)
	} else {
		result, err = store.BackupSince(ctx, out, earlier)
	}
	bar.Clear()
	if ctx.Err() != nil && err != nil {
		t.Complain(errors.New("interrupted; there is no copy"))
		return errors.Join(ctx.Err(), notCanceled(err))
	}
	// With an earlier backup the error is about that one: the store itself is open by now.
	if errors.Is(err, bitcask.ErrForeign) && earlier != "" {
		err = fmt.Errorf("%w; leave out --incremental for a whole backup", err)
	}
	if err != nil {
		return failed(exitCommand, err)
	}
	// The new backup is whole: what the earlier one had damaged was not shared. But the earlier one stays damaged.
	if result.Damaged > 0 {
		t.Complain(fmt.Errorf("%s: %s damaged, and copied from the store; stave check %s says where", earlier, humanize.Plural(result.Damaged, "segment"), earlier))
	}
	r := backupReport{result, time.Since(started)}
	return report(sentences, asJSON, quiet, r, backupSentence(r))
}

// backupSentence is what a backup ends with. Linked segments take no space of their own until one
// of the two stores merges them; shared ones are linked to the earlier backup. The time is cut to
// microseconds, which is more than a person reads and less than the clock has.
func backupSentence(r backupReport) string {
	text := fmt.Sprintf("backed up %s in %s: linked %d (%s), copied %d (%s)", humanize.Plural(r.Segments, "segment"), humanize.Duration(r.Took.Round(time.Microsecond)),
		r.Linked, humanize.Size(r.BytesLinked), r.Copied, humanize.Size(r.BytesCopied))
	if r.Reused > 0 {
		text += fmt.Sprintf(", shared with the earlier one %d (%s)", r.Reused, humanize.Size(r.BytesReused))
	}
	return text
}
