package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/cli/internal/humanize"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// A repair never changes the store that it reads. It makes a new one from what verifies, and lists
// the losses key by key where the keys are known: a person has to decide whether to accept them.

// maxLosses is how many losses are printed; --json has them all. The sentence at the end has their number either way.
const maxLosses = 1000

// repairCommand describes stave repair. It takes no lock on the damaged store, whose LOCK may be gone or of a process
// that hangs; that nothing writes to it meanwhile is up to the person. There is no repair in place.
func repairCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "repair",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.StringFlag{Name: "out", Usage: "the directory of the new store, which must be new or empty"},
			&cli.BoolFlag{Name: "json", Usage: "print one object with everything that was lost"},
			quietFlag(),
		},
		Action: onDir(func(c *cli.Context, dir string) error {
			if c.String("out") == "" {
				return usagef("repair needs --out NEW, the directory of the new store")
			}
			return runRepair(t, dir, c.String("out"), c.Bool("json"), c.Bool("quiet"))
		}),
	}
}

// runRepair copies the intact records. The status says whether that is all: 4 also where there was
// no manifest, since then any number of segments may be missing. The directory is checked here only
// for the words of the error.
//
// The new store is made under a partial name and gets the one that was asked for when all of it is on
// disk: a directory of that name is whole, whenever the process ends. What is left of a repair that
// failed is kept, and named, where it may be of use; where nothing could be read it is removed.
func runRepair(t *terminal.Streams, dir, out string, asJSON, quiet bool) error {
	ctx, stop := t.Interruptible()
	defer stop()
	started := time.Now()
	switch info, err := os.Stat(dir); {
	case err != nil:
		return failed(exitOpen, fmt.Errorf("repair %s: %w", dir, errors.Unwrap(err)))
	case !info.IsDir():
		return failed(exitOpen, fmt.Errorf("repair %s: not a directory", dir))
	}
	out, err := placeOutside(out, dir)
	if err != nil {
		return fmt.Errorf("repair %s: %w", dir, err)
	}
	partial := filepath.Clean(out) + ".partial"
	if err := maybeNew(out, partial); err != nil {
		return failed(exitCommand, fmt.Errorf("repair %s: %w", dir, err))
	}
	// Each record is read, and read again when the new store is opened for its counts.
	bar := t.Progress(asJSON || quiet, "repair", 2*logBytes(dir))
	result, err := repair.Salvage(ctx, dir, partial, seam.With(&bitcask.Options{}, seam.Options{Read: bar.Add}))
	bar.Clear()
	// What the error of a failure says of the files that it leaves depends on how far it got.
	what := "is incomplete: delete it, and repair again when that is put right"
	if err == nil {
		what = "is the whole of the new store, without its name: rename it"
		err = publish(partial, out)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		t.Complain(fmt.Errorf("interrupted; %s is incomplete: delete it", partial))
		return errors.Join(ctx.Err(), notCanceled(err))
	// Nothing that can be read is a store that cannot be opened; any other error happened on the way.
	case errors.Is(err, bitcask.ErrNotFound) || errors.Is(err, bitcask.ErrVersion):
		return failed(exitOpen, errors.Join(err, os.RemoveAll(partial)))
	case err != nil:
		if _, missing := os.Lstat(partial); missing == nil {
			err = fmt.Errorf("%w; %s %s", err, partial, what)
		}
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

// maybeNew fails unless a directory may be made, under a partial name at first: what is not whole never has the name
// that was asked for. An empty directory of that name is no obstacle. The remains of another attempt are, for it may be
// under way.
func maybeNew(dir, partial string) error {
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return fmt.Errorf("%s: %w", dir, bitcask.ErrNotEmpty)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(partial); err == nil {
		return fmt.Errorf("%s is there, from a repair that did not end: delete it", partial)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// publish gives a directory that is whole, and on disk, its name. The files stay under the partial name if it fails.
// The directory above is synced last: without that the name might not survive a power cut, though the files would.
func publish(partial, dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // it was empty
		return err
	}
	if err := os.Rename(partial, dir); err != nil {
		return err
	}
	return vfs.OS().SyncDir(filepath.Dir(dir))
}

// printRepair lists the losses, then one sentence about the copy. Numbers that are zero are left
// out, except that of the losses.
func printRepair(t *terminal.Streams, r repair.Result, asJSON, quiet bool, took time.Duration) error {
	if asJSON {
		return json.NewEncoder(t.Out).Encode(r)
	}
	// Keys in a loss are bytes of others: they are printed so that a terminal does not obey them.
	for i, l := range r.Lost {
		if i == maxLosses {
			if _, err := fmt.Fprintf(t.Out, "and %s more\n", humanize.Count(int64(len(r.Lost)-i))); err != nil {
				return err
			}
			break
		}
		if _, err := fmt.Fprintf(t.Out, "%s\n", terminal.Safe([]byte(l.String()))); err != nil {
			return err
		}
	}
	if quiet {
		return nil
	}
	text := fmt.Sprintf("copied %s of %s in %s, lost %s", humanize.Plural(r.Records, "record"), humanize.Plural(r.Segments, "segment"), humanize.Duration(took),
		humanize.Count(int64(len(r.Lost))))
	if r.Replaced > 0 {
		text += fmt.Sprintf("; replaced since, and no loss: %s", humanize.Plural(r.Replaced, "damaged record"))
	}
	if r.Mended > 0 {
		text += fmt.Sprintf("; made %s right", humanize.Plural(r.Mended, "collection"))
	}
	if r.Remains > 0 {
		text += fmt.Sprintf("; %s of them from %s of what openings had truncated", humanize.Count(int64(r.Returned)), humanize.Plural(r.Remains, "file"))
	}
	if r.Torn > 0 {
		text += fmt.Sprintf("; %s of an unfinished write left out", humanize.Size(r.Torn))
	}
	if r.NoManifest {
		text += "; without the manifest, or with segments that it had lost, deleted data may be back"
	}
	_, err := fmt.Fprintln(t.Out, text)
	return err
}
