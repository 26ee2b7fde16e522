package benchmark

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/histogram"
)

// Options say what is measured.
type Options struct {
	Entries    int // operations a workload
	Threads    int // operations at a time
	ValueBytes int
	Sync       db.SyncMode
	// Progress is called now and then with how much of a step is done, and with 0 at its beginning. It must be quick.
	// Default: nothing.
	Progress func(step string, done, total int)
}

// A Runner measures workloads, one at a time.
type Runner struct {
	o     Options
	value []byte
	store *db.Store
}

// New returns a runner. Its value has bytes that do not repeat: those would be compressed by some file systems, and the
// disk would seem faster than it is.
func New(o Options) *Runner {
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	r := &Runner{o: o, value: make([]byte, o.ValueBytes)}
	for i := range r.value {
		r.value[i] = byte(scatter(uint64(i)))
	}
	return r
}

// Measure measures one workload on a store of its own in dir, which must not be there. The store is closed and removed
// before the result is returned: the next workload starts with an idle disk as far as that is in our hands. It ends
// when ctx does.
func (r *Runner) Measure(ctx context.Context, w Workload, dir string) (res Result, err error) {
	// Without merges in the background: one would begin in the middle of some
	// workload and not of others.
	r.store, err = db.Open(dir, &db.Options{Sync: r.o.Sync, NoMerge: true})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.store.Close(), os.RemoveAll(dir)) }()
	if err := r.load(ctx, w); err != nil {
		return res, err
	}
	runtime.GC() // of what loading left, or the first operations would pay for it
	var h histogram.Histogram
	began := time.Now()
	err = r.measure(ctx, w, &h)
	return newResult(w, &h, time.Since(began)), err
}

// load makes what a workload needs, in commits of many entries.
func (r *Runner) load(ctx context.Context, w Workload) error {
	const batch = 1000
	for from := 0; w.load != nil && from < r.o.Entries; from += batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.o.Progress(w.Name+": loading", from, r.o.Entries)
		if err := w.load(r, from, min(from+batch, r.o.Entries)); err != nil {
			return err
		}
	}
	return nil
}

// measure runs the operations of a workload on all threads. The numbers of the operations are
// shared out in advance, so the threads share nothing but the store.
func (r *Runner) measure(ctx context.Context, w Workload, h *histogram.Histogram) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := r.operations(w)
	var done atomic.Int64
	errs := make([]error, r.o.Threads)
	parts := make([]histogram.Histogram, r.o.Threads)
	finished := make(chan struct{})
	var wait sync.WaitGroup
	for thread := range r.o.Threads {
		wait.Go(func() {
			from, to := n*thread/r.o.Threads, n*(thread+1)/r.o.Threads
			if errs[thread] = r.operate(ctx, w, from, to, &parts[thread], &done); errs[thread] != nil {
				cancel() // of no use without the others
			}
		})
	}
	go func() {
		wait.Wait()
		close(finished)
	}()
	r.watch(w.Name, n, &done, finished)
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
func (r *Runner) operate(ctx context.Context, w Workload, from, to int, h *histogram.Histogram, done *atomic.Int64) error {
	const between = 256 // operations between two checks of the context
	op := w.operation(r)
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

// watch reports the progress until the workload is finished. It runs in the caller's goroutine and
// returns when all threads have ended.
func (r *Runner) watch(name string, total int, done *atomic.Int64, finished <-chan struct{}) {
	const interval = 100 * time.Millisecond
	r.o.Progress(name, 0, total)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-finished:
			return
		case <-tick.C:
			r.o.Progress(name, int(done.Load()), total)
		}
	}
}
