package cli

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/jsonl"
	"github.com/urfave/cli/v2"
)

// One line of JSON for each key, in a form that import reads back and other programs can produce:
// package jsonl has both directions. The store is opened for reading only, so an export can run
// next to a server; it has the keys as of the moment of opening.

// An export is package jsonl's; here are its options. The store is opened for reading only, which
// pins it to one moment, also while a server writes to it.

// exportCommand describes stave export.
func exportCommand(t *terminal) *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "Writes the keys of a store as lines of JSON",
		UsageText: "stave export [--dir DIR] [--db N] [--match PATTERN] [--sort] > FILE",
		Description: `One line is one key with everything it holds, in the form that stave help import
describes. Importing the lines into another store makes the same keys: bytes that
are not UTF-8 are written in base64, deadlines as Unix times.

Hash fields and set members are sorted, so that two exports of the same key are
the same line; --sort puts the keys in order too, for which it holds all their
names in memory. Otherwise nothing but one key's field names is.

The store is opened for reading only: a server may go on working with it, and
the export has each key as it was when the export began.`,
		Flags: []cli.Flag{
			dirFlag(),
			&cli.IntFlag{Name: "db", Aliases: []string{"n"}, Value: -1, Usage: "export namespace `N` alone", DefaultText: "all"},
			&cli.StringFlag{Name: "match", Usage: "export the keys that match the glob `PATTERN`"},
			&cli.BoolFlag{Name: "sort", Usage: "sort by key"},
			quietFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("export takes no arguments; it writes to the standard output")
			}
			return runExport(t, c)
		},
	}
}

// runExport writes the lines to the standard output, which a reader may close early: that error is
// the export's. The bar counts keys, whose number is known; bytes are only shown.
func runExport(t *terminal, c *cli.Context) (err error) {
	ctx, stop := t.interruptible()
	defer stop()
	store, err := openExisting(t, chosenDir(c), &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	o := jsonl.ExportOptions{Match: c.String("match"), Sort: c.Bool("sort")}
	if n := c.Int("db"); n >= 0 {
		if _, err := store.Use(n); err != nil {
			return usagef("db %d: %v", n, err)
		}
		o.Namespaces = []int{n}
	}
	bar := newProgress(t.bars(c.Bool("quiet")), "export", int64(store.Stats().Keys))
	o.Progress = func(bytes, keys int64) { bar.update(keys, bytes, keys) }
	_, err = jsonl.Export(ctx, store, t.out, o)
	bar.clear()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failed(exitCommand, err)
}
