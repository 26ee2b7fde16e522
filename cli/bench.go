package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/cli/internal/benchmark"
	"github.com/stavedb/stave/cli/internal/terminal"
)

// The workloads and their measurement are in package benchmark; here are the options, the directory and what is
// printed. Each workload begins with a store of its own, so that the figures do not depend on which others were chosen.

// benchCommand describes stave bench. The text of its help lists the workloads from their table.
// With --json on a terminal there are no bars: they would mix with the object.
func benchCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name: "bench",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Value: 100_000, Usage: "`N` operations a workload"},
			&cli.IntFlag{Name: "size", Value: 128, Usage: "values of `BYTES`"},
			&cli.IntFlag{Name: "threads", Aliases: []string{"t"}, Value: 1, Usage: "`T` operations at a time"},
			syncFlag("interval"),
			&cli.StringFlag{Name: "only", Usage: "run the workloads in `LIST`, names with commas between", DefaultText: "all"},
			&cli.BoolFlag{Name: "json", Usage: "print all figures as one JSON object, times in nanoseconds"},
			quietFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usagef("bench takes one directory")
			}
			return runBench(t, c)
		},
	}
}

// The largest values that are accepted: larger ones are typing mistakes. That of a value's size is the store's own.
const (
	maxBenchEntries = 1_000_000_000
	maxBenchThreads = 1024
)

// benchOptions reads the options. All is checked before a directory is made. An unknown workload is an error of usage
// that names those that there are.
func benchOptions(c *cli.Context) (o benchmark.Options, chosen []benchmark.Workload, err error) {
	o = benchmark.Options{Entries: c.Int("n"), Threads: c.Int("threads"), ValueBytes: c.Int("size")}
	if o.Sync, err = syncMode(c.String("sync")); err != nil {
		return o, nil, err
	}
	switch {
	case o.Entries < 1 || o.Entries > maxBenchEntries:
		return o, nil, usagef("-n must be from 1 to %d", maxBenchEntries)
	case o.Threads < 1 || o.Threads > maxBenchThreads:
		return o, nil, usagef("--threads must be from 1 to %d", maxBenchThreads)
	case o.ValueBytes < 0 || o.ValueBytes > bitcask.MaxValue:
		return o, nil, usagef("--size must be from 0 to %d", bitcask.MaxValue)
	}
	if chosen, err = benchmark.Named(c.String("only")); err != nil {
		return o, nil, usagef("%w (see stave help bench)", err)
	}
	return o, chosen, nil
}

// runBench makes a directory, runs the workloads there, and leaves nothing. Results appear as they come,
// unless they are asked for as JSON: that is one object, at the end. The argument is the parent of the
// directory: the figures are those of the disk that it is on, and without one of the system's directory
// for temporary files, which may be in memory. Interrupted, it prints no JSON: half of an object is none.
func runBench(t *terminal.Streams, c *cli.Context) (err error) {
	o, chosen, err := benchOptions(c)
	if err != nil {
		return err
	}
	ctx, stop := t.Interruptible()
	defer stop()
	parent, asJSON := c.Args().First(), c.Bool("json")
	dir, err := os.MkdirTemp(parent, "stave-bench-")
	if err != nil {
		return openError(cmp.Or(parent, os.TempDir()), err)
	}
	defer func() { err = errors.Join(err, failed(exitCommand, os.RemoveAll(dir))) }()
	report := benchmark.NewReport(versionText(), o)
	if !asJSON {
		if err := report.WriteHead(t.Out); err != nil {
			return failed(exitCommand, err)
		}
	}
	// The bar is named by the first step. It counts operations, and shows the bytes of their values.
	bar := t.Progress(c.Bool("quiet") || asJSON && t.OutTTY, "", 0)
	o.Progress = func(step string, done, total int) {
		if done == 0 {
			bar.Next(step, int64(total))
		}
		bar.Update(int64(done), int64(done)*int64(o.ValueBytes), int64(done))
	}
	runner := benchmark.New(o)
	// Each workload has a directory of its own, numbered: a name may be chosen twice.
	for i, w := range chosen {
		r, err := runner.Measure(ctx, w, filepath.Join(dir, fmt.Sprint(i)))
		bar.Clear()
		if ctx.Err() != nil {
			t.Complain(errors.New("interrupted"))
			return errors.Join(ctx.Err(), notCanceled(err))
		}
		if err != nil {
			return failed(exitCommand, fmt.Errorf("bench %s: %w", w.Name, err))
		}
		report.Workloads = append(report.Workloads, r)
		if !asJSON {
			if err := r.Write(t.Out); err != nil {
				return failed(exitCommand, err)
			}
		}
	}
	if asJSON {
		return failed(exitCommand, json.NewEncoder(t.Out).Encode(report))
	}
	return nil
}
