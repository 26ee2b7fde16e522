package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
)

// A repair never changes the store that it reads. It makes a new one from what verifies, and lists
// the losses key by key where the keys are known: a person has to decide whether to accept them.

// maxLosses is how many losses are printed; --json has them all.
const maxLosses = 1000

// repairCommand describes stave repair.
func repairCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "repair",
		Usage:     "Copies what is left of a damaged store into a new one",
		ArgsUsage: "[DIR]",
		UsageText: "stave repair [DIR] --out NEW [--json]",
		Description: `Reads every segment of a store that no process has open, copies each record that
verifies into a new store in the directory NEW, and lists what it could not copy.
The damaged store is not changed.

A loss of which a hint file tells is one line with its key; it says whether an
older value is in the new store in its place. Of another loss only the place is
known: anything written before it may then be older than it was. What had been
replaced or deleted since is not counted as lost. What openings of the store have
truncated and kept (files with .torn- in their names) is put back where it was in
time; delete those files first to leave it out. Counts of collections are made
right, and lists with missing elements are closed up.

The status is 0 if nothing was lost, 4 if something was, and 3 if there was
nothing to read.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "the directory of the new store, which must be new or empty", Required: true},
			&cli.BoolFlag{Name: "json", Usage: "print one object with everything that was lost"},
			quietFlag(),
		},
		Action: onDir(func(c *cli.Context, dir string) error {
			return runRepair(t, dir, c.String("out"), c.Bool("json"), c.Bool("quiet"))
		}),
	}
}

// runRepair copies the intact records. The status says whether that is all: 4 also where there was
// no manifest, since then any number of segments may be missing. The directory is checked here only
// for the words of the error.
func runRepair(t *terminal, dir, out string, asJSON, quiet bool) error {
	ctx, stop := t.interruptible()
	defer stop()
	started := time.Now()
	switch info, err := os.Stat(dir); {
	case err != nil:
		return failed(exitOpen, fmt.Errorf("repair %s: %w", dir, errors.Unwrap(err)))
	case !info.IsDir():
		return failed(exitOpen, fmt.Errorf("repair %s: not a directory", dir))
	}
	result, err := repair.Salvage(ctx, dir, out, nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	// Nothing to read is a store that cannot be opened; any other error happened on the way.
	case errors.Is(err, bitcask.ErrNotFound) || errors.Is(err, bitcask.ErrVersion):
		return failed(exitOpen, err)
	case err != nil:
		return failed(exitCommand, err)
	}
	if err := printRepair(t, result, asJSON, quiet, time.Since(started)); err != nil {
		return failed(exitCommand, err)
	}
	if len(result.Lost) > 0 || result.NoManifest {
		return &exitError{status: exitDamage}
	}
	return nil
}

// printRepair lists the losses, then one sentence about the copy. Numbers that are zero are left
// out, except that of the losses.
func printRepair(t *terminal, r repair.Result, asJSON, quiet bool, took time.Duration) error {
	if asJSON {
		return json.NewEncoder(t.out).Encode(r)
	}
	// Keys in a loss are bytes of others: they are printed so that a terminal does not obey them.
	for i, l := range r.Lost {
		if i == maxLosses {
			if _, err := fmt.Fprintf(t.out, "and %s more\n", countText(int64(len(r.Lost)-i))); err != nil {
				return err
			}
			break
		}
		if _, err := fmt.Fprintf(t.out, "%s\n", safeText([]byte(l.String()))); err != nil {
			return err
		}
	}
	if quiet {
		return nil
	}
	text := fmt.Sprintf("copied %s of %s in %s, lost %s", plural(r.Records, "record"), plural(r.Segments, "segment"), durationText(took),
		countText(int64(len(r.Lost))))
	if r.Replaced > 0 {
		text += fmt.Sprintf("; replaced since, and no loss: %s", plural(r.Replaced, "damaged record"))
	}
	if r.Mended > 0 {
		text += fmt.Sprintf("; made %s right", plural(r.Mended, "collection"))
	}
	if r.Remains > 0 {
		text += fmt.Sprintf("; %s of them from %s of what openings had truncated", countText(int64(r.Returned)), plural(r.Remains, "file"))
	}
	if r.Torn > 0 {
		text += fmt.Sprintf("; %s of an unfinished write left out", sizeText(r.Torn))
	}
	if r.NoManifest {
		text += "; without the manifest, or with segments that it had lost, deleted data may be back"
	}
	_, err := fmt.Fprintln(t.out, text)
	return err
}
