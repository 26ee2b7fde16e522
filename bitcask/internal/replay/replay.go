// Package replay applies the records of a log to the index, in order of sequence: all of the log, or what it has after
// an INDEX. The log is read by one goroutine for each segment and applied by one for each processor; a store that
// follows another one applies commit by commit (Applier). Where the log ends it decides between a torn tail and damage.
package replay

import (
	"cmp"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/kway"
	"github.com/stavedb/stave/bitcask/internal/manifest"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// Replaying takes three kinds of goroutines. Readers decode segments, each one
// from beginning to end, into batches with the hashes of the keys. One merger
// brings the batches in order of sequence: it passes on runs of entries that no
// other segment comes between. Appliers take every run and apply the entries of
// their own stripes: all records of a key are in one stripe, so the order within
// stripes is all that matters. Records about namespaces wait for all appliers.

const (
	batchEntries = 4096
	batchBytes   = 256 << 10
	readAhead    = 2 // batches read but not yet consumed
)

// batch is a piece of a segment, decoded.
type batch struct {
	sg      *segment.Segment
	buf     []byte // what entries point into
	keys    []byte // and this
	entries []format.Entry
	hashes  []uint64
	stops   []int // entries about namespaces, and system records
	bytes   int64 // of the log that the entries stand for
	users   atomic.Int32
}

// run is the entries from..to of a batch.
type run struct {
	b        *batch
	from, to int
}

// Environment is what a replay needs of the store.
type Environment struct {
	FS       vfs.FS
	Dir      string
	NoHints  bool
	ReadOnly bool // a writer alongside may finish a frame that does not verify yet
	Logger   *slog.Logger
	Manifest *manifest.Manifest
	Tail     []*segment.Segment    // the unsealed segments in log order
	Present  map[string]bool       // names in the directory
	After    *indexfile.Contents   // what the index has already
	Only     *[keydir.Stripes]bool // stripes that are replayed; nil: all
	Index    *Index

	System   func(sg *segment.Segment, e *format.Entry) // a system record was met
	Tolerate func(err error) error                      // whether damage can be done without; nil: it cannot
	Passed   func(bytes int64) error                    // called by several goroutines; its error ends the replay
}

// Result is what a replay has met.
type Result struct {
	Hintless []uint32 // sealed segments that need a hint
	Stale    []string // hints that are no good
	Scanned  int      // sealed segments that were read without a hint
	Replayed uint64   // records
}

// replayer is one replay of the log.
type replayer struct {
	*Environment
	free    sync.Pool
	stop    chan struct{} // closed at the end: readers give up
	readers sync.WaitGroup

	appliers []*Applier
	runs     []chan run // one for each applier
	busy     sync.WaitGroup
	failed   atomic.Bool // an applier has an error

	mu     sync.Mutex // guards what readers note about segments
	result Result
}

// reader reads one sealed segment, or all the unsealed ones: where one of those
// ends decides whether the next one counts.
type reader struct {
	segments []*segment.Segment
	minSeq   uint64 // no entry is older
	out      chan *batch
	err      error // once out is closed

	b   *batch
	pos int
}

func newReader(minSeq uint64, segments ...*segment.Segment) *reader {
	return &reader{segments: segments, minSeq: minSeq, out: make(chan *batch, readAhead)}
}

func (r *reader) seq() uint64 { return r.b.entries[r.pos].Seq }

// Run applies what the log has after env.After.
func (env *Environment) Run() (Result, error) {
	rp := &replayer{Environment: env, stop: make(chan struct{})}
	rp.free.New = func() any { return new(batch) }
	err := rp.run(rp.segments())
	return rp.result, err
}

// segments lists the segments to be read, oldest first.
func (rp *replayer) segments() []*reader {
	var list []*reader
	for _, sg := range rp.Index.Segments.All() {
		if !sg.Sealed() {
			continue
		}
		if int64(rp.After.SegmentOf(sg.ID).Length) < sg.Size.Load()-format.FooterSize {
			list = append(list, newReader(sg.Footer.MinSeq, sg))
		} else if !rp.NoHints && !rp.Present[format.HintName(sg.ID)] {
			rp.result.Hintless = append(rp.result.Hintless, sg.ID)
		}
	}
	if len(rp.Tail) > 0 {
		list = append(list, newReader(0, rp.Tail...))
	}
	slices.SortStableFunc(list, func(a, b *reader) int { return cmp.Compare(a.minSeq, b.minSeq) })
	return list
}

// run replays the segments.
func (rp *replayer) run(list []*reader) error {
	for range runtime.GOMAXPROCS(0) {
		a, runs := NewApplier(rp.Index, rp.After), make(chan run, 4)
		rp.appliers, rp.runs = append(rp.appliers, a), append(rp.runs, runs)
	}
	var work sync.WaitGroup
	for i := range rp.appliers {
		work.Go(func() { rp.apply(i) })
	}
	err := rp.merge(list)
	for _, runs := range rp.runs {
		close(runs)
	}
	work.Wait()
	close(rp.stop)
	rp.readers.Wait()
	errs := []error{err}
	for _, a := range rp.appliers {
		rp.result.Replayed += a.Flush()
		errs = append(errs, a.err)
	}
	return errors.Join(errs...)
}

// apply is an applier: it takes every run.
func (rp *replayer) apply(i int) {
	a, n := rp.appliers[i], len(rp.appliers)
	for r := range rp.runs[i] {
		hashes := r.b.hashes[:r.to]
		for k := r.from; k < r.to && a.err == nil; k++ {
			if h := hashes[k]; keydir.StripeOf(h)%n == i {
				a.err = a.Apply(r.b.sg, &r.b.entries[k], h)
			}
		}
		if a.err != nil {
			rp.failed.Store(true)
		}
		rp.release(r.b)
		rp.busy.Done()
	}
}

func (rp *replayer) release(b *batch) {
	if b.users.Add(-1) == 0 {
		rp.free.Put(b)
	}
}

// merge passes on the runs in order.
func (rp *replayer) merge(waiting []*reader) error {
	var h kway.Heap[*reader]
	started := 0
	for !rp.failed.Load() {
		// A segment takes part from its lowest sequence on; the next ones are
		// being read already.
		for ; started < len(waiting) && started < len(rp.appliers)+1; started++ {
			rp.start(waiting[started])
		}
		if h.Len() == 0 && len(waiting) == 0 {
			rp.busy.Wait()
			return nil
		}
		if len(waiting) > 0 && h.Due(waiting[0].minSeq) {
			r := waiting[0]
			waiting, started = waiting[1:], started-1
			if more, err := rp.next(r); err != nil {
				return err
			} else if more {
				h.Push(r, r.seq())
			}
			continue
		}
		r, _ := h.First()
		more, err := rp.pass(r, rp.limit(&h, waiting))
		if err != nil {
			return err
		}
		if more {
			h.Advance(r.seq())
		} else {
			h.Drop()
		}
	}
	return nil // the applier knows why
}

// limit is the lowest sequence that any reader but the first may have.
func (rp *replayer) limit(h *kway.Heap[*reader], waiting []*reader) uint64 {
	limit := h.Second()
	if len(waiting) > 0 {
		limit = min(limit, waiting[0].minSeq)
	}
	return limit
}

// pass passes on the entries at hand below limit, at least one. It reports
// whether the reader has more.
func (rp *replayer) pass(r *reader, limit uint64) (more bool, err error) {
	b, to := r.b, len(r.b.entries)
	if b.entries[to-1].Seq >= limit {
		to = r.pos + max(sort.Search(to-r.pos, func(i int) bool { return b.entries[r.pos+i].Seq >= limit }), 1)
	}
	if len(b.stops) > 0 && b.stops[0] < to {
		to = b.stops[0]
	}
	if r.pos < to {
		b.users.Add(int32(len(rp.runs)))
		rp.busy.Add(len(rp.runs))
		for _, runs := range rp.runs {
			runs <- run{b, r.pos, to}
		}
	} else if e := &b.entries[to]; e.Row().Home == format.HomeSystem { // of no stripe: no applier has to wait
		rp.System(b.sg, e)
		b.stops = b.stops[1:]
		to++
	} else { // about namespaces
		rp.busy.Wait()
		if rp.failed.Load() {
			return false, nil
		}
		if err := rp.appliers[0].namespaces(b.sg, &b.entries[to]); err != nil {
			return false, err
		}
		b.stops = b.stops[1:]
		to++
	}
	if r.pos = to; to < len(b.entries) {
		return true, nil
	}
	rp.release(b)
	return rp.next(r)
}

// next waits for the next batch of a reader.
func (rp *replayer) next(r *reader) (more bool, err error) {
	r.pos = 0
	if r.b = <-r.out; r.b == nil {
		return false, r.err
	}
	return true, nil
}

// start starts a reader.
func (rp *replayer) start(r *reader) {
	rp.readers.Go(func() {
		defer close(r.out)
		for _, sg := range r.segments {
			if sg.Dropped {
				break
			}
			if r.err = rp.read(r, sg); r.err != nil {
				break
			}
		}
	})
}
