package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/jsonl"
	"github.com/stavedb/stave/redisfile"
)

// An export is that of package jsonl, or of package redisfile; here are its options. The store is opened for reading
// only, which pins it to one moment, also while a server writes to it. With --to it goes to a running Redis instead of
// the standard output: export_redis.go.

// exportCommand describes stave export. Its statuses: 1 if it could not be written, 3 if the store or the Redis could
// not be had, 5 if something was left out.
func exportCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "export",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.StringFlag{Name: "format", Aliases: []string{"f"}, Value: exportJSON, Usage: "write `F`: jsonl, rdb or aof"},
			&cli.IntFlag{Name: "rdb-version", Usage: "write version `N` of RDB, 9 to 12", DefaultText: "9, or 10 with libraries"},
			&cli.IntFlag{Name: "db", Aliases: []string{"n"}, Value: -1, Usage: "export namespace `N` alone", DefaultText: "all"},
			&cli.StringFlag{Name: "match", Usage: "export the keys that match the glob `PATTERN`"},
			&cli.BoolFlag{Name: "sort", Usage: "sort by key"},
			&cli.StringFlag{Name: "to", Usage: "bring the keys to the running Redis at `URL`: redis://HOST:PORT/DB"},
			&cli.IntFlag{Name: "rate", Usage: "with --to: at most `N` keys per second", DefaultText: "no limit"},
			&cli.BoolFlag{Name: "keep-going", Aliases: []string{"k"}, Usage: "with --to: skip keys that the Redis refuses"},
			quietFlag(),
		},
		Action: func(c *cli.Context) error {
			if err := checkExportFlags(t, c); err != nil {
				return err
			}
			return runExport(t, c)
		},
	}
}

// checkExportFlags takes the directory, and refuses options that contradict each other. Those are errors before the
// store is opened: an option that was ignored would be noticed in the file only.
func checkExportFlags(t *terminal.Streams, c *cli.Context) error {
	if err := takeDir(c, c.NArg()); err != nil {
		return err
	}
	switch {
	case c.String("to") == "" && (c.IsSet("rate") || c.IsSet("keep-going")):
		return usagef("--rate and --keep-going need --to")
	case c.String("to") != "" && (c.IsSet("format") || c.IsSet("sort")):
		return usagef("--to writes no file: it goes with neither --format nor --sort")
	case c.Int("rate") < 0:
		return usagef("--rate must not be negative")
	case !slices.Contains([]string{exportJSON, exportRDB, exportAOF}, c.String("format")):
		return usagef("--format must be jsonl, rdb or aof, not %q", c.String("format"))
	case c.IsSet("rdb-version") && c.String("format") != exportRDB:
		return usagef("--rdb-version needs --format rdb")
	case c.String("format") == exportRDB && t.OutTTY:
		return usagef("an RDB file is not for a terminal: stave export --format rdb > FILE")
	}
	if v := c.Int("rdb-version"); c.IsSet("rdb-version") && (v < redisfile.OldestVersion || v > redisfile.NewestVersion) {
		return usagef("--rdb-version must be %d to %d, not %d", redisfile.OldestVersion, redisfile.NewestVersion, v)
	}
	return nil
}

// The formats that are written: Stave's own lines, which leave nothing out, and Redis's two files.
const (
	exportJSON = "jsonl"
	exportRDB  = "rdb"
	exportAOF  = "aof"
)

// runExport writes to the standard output, which a reader may close early: that error is
// the export's. The bar counts keys, whose number is known; bytes are only shown. With a pattern
// the bar ends early, for the keys that it leaves out are not counted.
func runExport(t *terminal.Streams, c *cli.Context) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	store, err := openExisting(ctx, t, chosenDir(c), &db.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer closeInto(&err, store.Close)
	// nil means all namespaces, those without keys included: they have nothing to write.
	var namespaces []int
	if n := c.Int("db"); n >= 0 {
		if _, err := store.Use(n); err != nil {
			return usagef("db %d: %v", n, err)
		}
		namespaces = []int{n}
	}
	if c.String("to") != "" {
		return runRedisExport(ctx, t, c, store, namespaces)
	}
	// The three formats differ in nothing but the function that writes them.
	bar := t.Progress(c.Bool("quiet"), "export", int64(store.Stats().Keys))
	update := func(bytes, keys int64) { bar.Update(keys, bytes, keys) }
	o := redisfile.ExportOptions{Version: c.Int("rdb-version"), Namespaces: namespaces, Match: c.String("match"), Sort: c.Bool("sort"), Progress: update}
	var r redisfile.ExportResult
	switch c.String("format") {
	case exportRDB:
		r, err = redisfile.ExportRDB(ctx, store, t.Out, o)
	case exportAOF:
		r, err = redisfile.ExportAOF(ctx, store, t.Out, o)
	default:
		var lines jsonl.ExportResult
		lines, err = jsonl.Export(ctx, store, t.Out, jsonl.ExportOptions{Namespaces: o.Namespaces, Match: o.Match, Sort: o.Sort, Progress: update})
		r.Broken = lines.Broken
	}
	bar.Clear()
	// A file that ends early looks like a whole one of a smaller store, if it is of lines or commands: so it is said.
	switch {
	case ctx.Err() != nil:
		t.Complain(errors.New("interrupted; what has been written is not the whole store"))
		return ctx.Err()
	case err != nil:
		return failed(exitCommand, err)
	}
	return failed(exitPartial, leftOut(r))
}

// leftOut says what an export has left out, nil if it is complete: the rest has been written, so the status is that of
// a part and not of a failure.
func leftOut(r redisfile.ExportResult) error {
	list := []error{r.Broken}
	if r.FieldDeadlines > 0 {
		list = append(list, fmt.Errorf("left out deadlines of fields of hashes (%d): --rdb-version 12 has them, for Redis 7.4 and later", r.FieldDeadlines))
	}
	if r.LibrariesLeftOut > 0 {
		list = append(list, fmt.Errorf("left out libraries of functions (%d): --rdb-version %d has them, for Redis 7.0 and later", r.LibrariesLeftOut, redisfile.LibraryVersion))
	}
	return errors.Join(list...)
}
