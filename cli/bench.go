package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/cli/internal/terminal"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/histogram"
)

// A benchmark for the question "how fast is it on my disk?". It measures through the embedded
// interface, with the store's own defaults, and without a network; package bench, a module of its
// own, compares with other stores.
//
// Each workload has a store of its own in a new directory, so that none pays for the garbage of the
// previous one; loading is not measured. A thread counts into a histogram of its own, since a
// shared one would be what is measured.

// benchCommand describes stave bench. The text of its help lists the workloads from their table.
// With --json on a terminal there are no bars: they would mix with the object.
func benchCommand(t *terminal.Streams) *cli.Command {
	return &cli.Command{
		Name:      "bench",
		Usage:     "Measures a store on this machine's disk",
		ArgsUsage: "[DIR]",
		UsageText: "stave bench [DIR] [-n N] [--size BYTES] [--threads T] [--sync MODE] [--only LIST] [--json]",
		Description: `   stave bench /mnt/disk -n 1000000
   stave bench /mnt/disk -n 1000000 --only put,get --sync always

Makes a store in a new directory inside DIR (the system's directory for temporary
files if none is named: that may be memory, and not the disk to be measured),
measures it through the embedded interface, and removes it.

Every workload is N operations, shared among the threads. What a get or a rank
needs is loaded before, unmeasured. For each there are the operations a second,
the times that 50, 90, 99 and 99.9 % of the operations did not exceed, the
longest, and how many took how long: the bar of 1.02 us holds those of 1024 to
2047 ns. --only chooses, by name, from

` + workloadHelp(),
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
			b := &bench{
				entries: c.Int("n"), threads: c.Int("threads"), sync: c.String("sync"),
				bars: t.Bars(c.Bool("quiet") || c.Bool("json") && t.OutTTY),
			}
			if err := b.prepare(c.String("only"), c.Int("size")); err != nil {
				return err
			}
			return runBench(t, b, c.Args().First(), c.Bool("json"))
		},
	}
}

// The largest values that are accepted: larger ones are typing mistakes.
const (
	maxBenchEntries = 1_000_000_000
	maxBenchThreads = 1024
)

// prepare checks the request. It makes the value too, of bytes that do not compress. All is checked
// before the directory is made.
func (b *bench) prepare(only string, size int) error {
	var err error
	if b.mode, err = syncMode(b.sync); err != nil {
		return err
	}
	switch {
	case b.entries < 1 || b.entries > maxBenchEntries:
		return usagef("-n must be from 1 to %d", maxBenchEntries)
	case b.threads < 1 || b.threads > maxBenchThreads:
		return usagef("--threads must be from 1 to %d", maxBenchThreads)
	case size < 0 || size > bitcask.MaxValue:
		return usagef("--size must be from 0 to %d", bitcask.MaxValue)
	}
	b.value = make([]byte, size)
	// Bytes that repeat would be compressed by some file systems, and the disk would seem faster
	// than it is.
	for i := range b.value {
		b.value[i] = byte(scatter(uint64(i)))
	}
	if only == "" {
		b.chosen = benchWorkloads
		return nil
	}
	for name := range strings.SplitSeq(only, ",") {
		w, ok := benchWorkload(strings.TrimSpace(name))
		if !ok {
			return usagef("no workload %q (see stave help bench)", name)
		}
		b.chosen = append(b.chosen, w)
	}
	return nil
}

// runBench makes the store, runs the workloads, and leaves nothing. Results appear as they come,
// unless they are asked for as JSON: that is one object, at the end.
func runBench(t *terminal.Streams, b *bench, parent string, asJSON bool) (err error) {
	ctx, stop := t.Interruptible()
	defer stop()
	b.dir, err = os.MkdirTemp(parent, "stave-bench-")
	if err != nil {
		return openError(cmp.Or(parent, os.TempDir()), err)
	}
	defer func() { err = errors.Join(err, failed(exitCommand, os.RemoveAll(b.dir))) }()
	report := newBenchReport(b)
	if !asJSON {
		if err := report.writeHead(t.Out); err != nil {
			return failed(exitCommand, err)
		}
	}
	// Each workload has a directory of its own, numbered: a name may be chosen twice.
	for i, w := range b.chosen {
		r, err := b.run(ctx, w, filepath.Join(b.dir, fmt.Sprint(i)))
		if ctx.Err() != nil {
			t.Complain(errors.New("interrupted"))
			return errors.Join(ctx.Err(), notCanceled(err))
		}
		if err != nil {
			return failed(exitCommand, fmt.Errorf("bench %s: %w", w.name, err))
		}
		report.Workloads = append(report.Workloads, r)
		if !asJSON {
			if err := r.write(t.Out); err != nil {
				return failed(exitCommand, err)
			}
		}
	}
	if asJSON {
		return failed(exitCommand, report.writeJSON(t.Out))
	}
	return nil
}

// run measures one workload on a store of its own. The store is closed and removed before the
// result is returned: the next workload starts with an idle disk as far as that is in our hands.
func (b *bench) run(ctx context.Context, w workload, dir string) (r benchResult, err error) {
	// Without merges in the background: one would begin in the middle of some
	// workload and not of others.
	b.store, err = db.Open(dir, &db.Options{Sync: b.mode, NoMerge: true})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.store.Close(), os.RemoveAll(dir)) }()
	if w.load != nil {
		bar := terminal.NewProgress(b.bars, w.name+": loading", int64(b.entries))
		err := inBatches(ctx, b.entries, func(from, to int) error {
			bar.Update(int64(from), int64(from)*int64(len(b.value)), int64(from))
			return w.load(b, from, to)
		})
		bar.Clear()
		if err != nil {
			return r, err
		}
	}
	runtime.GC() // of what loading left, or the first operations would pay for it
	var h histogram.Histogram
	began := time.Now()
	err = b.measure(ctx, w, &h)
	return newBenchResult(w, &h, time.Since(began)), err
}

// measure runs the operations of a workload on all threads. The numbers of the operations are
// shared out in advance, so the threads share nothing but the store.
func (b *bench) measure(ctx context.Context, w workload, h *histogram.Histogram) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := b.operations(w)
	var done atomic.Int64
	errs := make([]error, b.threads)
	parts := make([]histogram.Histogram, b.threads)
	finished := make(chan struct{})
	var wait sync.WaitGroup
	for thread := range b.threads {
		wait.Go(func() {
			from, to := n*thread/b.threads, n*(thread+1)/b.threads
			if errs[thread] = b.operate(ctx, w, from, to, &parts[thread], &done); errs[thread] != nil {
				cancel() // of no use without the others
			}
		})
	}
	go func() {
		wait.Wait()
		close(finished)
	}()
	b.watch(w.name, n, &done, finished)
	for thread := range parts {
		h.Merge(&parts[thread])
	}
	// The threads that did not fail return context.Canceled: skip those.
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}

// operate runs the operations from to to-1 and counts how long each took. The clock is read twice
// for each operation, and the figures of the fastest operations contain that. The context is
// checked rarely, for the same reason.
func (b *bench) operate(ctx context.Context, w workload, from, to int, h *histogram.Histogram, done *atomic.Int64) error {
	const between = 256 // operations between two checks of the context
	op := w.operation(b)
	for i := from; i < to; i++ {
		if (i-from)%between == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			done.Add(int64(min(between, to-i)))
		}
		began := time.Now()
		if err := op(i); err != nil {
			return err
		}
		h.Add(time.Since(began))
	}
	return nil
}

// watch draws the bar until the workload is finished. It runs in the goroutine of the command and
// returns when all threads have ended.
func (b *bench) watch(name string, total int, done *atomic.Int64, finished <-chan struct{}) {
	bar := terminal.NewProgress(b.bars, name, int64(total))
	defer bar.Clear()
	tick := time.NewTicker(terminal.Interval)
	defer tick.Stop()
	for {
		select {
		case <-finished:
			return
		case <-tick.C:
			n := done.Load()
			bar.Update(n, n*int64(len(b.value)), n)
		}
	}
}
