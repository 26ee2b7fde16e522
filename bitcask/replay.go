package bitcask

import (
	"cmp"
	"errors"
	"io"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/indexfile"
	"github.com/stavedb/stave/bitcask/internal/kway"
	"github.com/stavedb/stave/bitcask/internal/segment"
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

// replayer is one replay of the log.
type replayer struct {
	s       *opener
	after   *indexfile.Contents
	free    sync.Pool
	stop    chan struct{} // closed at the end: readers give up
	readers sync.WaitGroup

	appliers []*applier
	runs     []chan run // one for each applier
	busy     sync.WaitGroup
	failed   atomic.Bool // an applier has an error

	mu       sync.Mutex // guards what readers note about segments
	hintless []uint32
	stale    []string
	scanned  int
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

// replayLog applies what the log has after ix.
func (s *opener) replayLog(ix *indexfile.Contents) error {
	rp := &replayer{s: s, after: ix, stop: make(chan struct{})}
	rp.free.New = func() any { return new(batch) }
	list := rp.segments()
	err := rp.run(list)
	s.hintless = append(s.hintless, rp.hintless...)
	s.stale = append(s.stale, rp.stale...)
	s.recovery.Scanned = rp.scanned
	for _, sg := range s.tail {
		s.log.Reach(sg.Footer.MaxSeq + 1)
		if err == nil && sg.FramesEnd < int64(ix.SegmentOf(sg.ID).Length) {
			err = indexfile.ErrUnfit // it contains entries that the disk has lost although they were synced
		}
	}
	if err == nil && ix.End.Opening != 0 && !s.reached(ix.End) {
		err = indexfile.ErrUnfit
	}
	return err
}

// segments lists the segments to be read, oldest first.
func (rp *replayer) segments() []*reader {
	s := rp.s
	var list []*reader
	for _, sg := range s.segments.Load().All() {
		if !sg.Sealed() {
			continue
		}
		// Not from the entries: records that follow others have numbers too.
		s.log.Reach(sg.Footer.MaxSeq + 1)
		if int64(rp.after.SegmentOf(sg.ID).Length) < sg.Size.Load()-format.FooterSize {
			list = append(list, newReader(sg.Footer.MinSeq, sg))
		} else if !s.opts.seam.NoHints && !s.present[format.HintName(sg.ID)] {
			rp.hintless = append(rp.hintless, sg.ID)
		}
	}
	if len(s.tail) > 0 {
		list = append(list, newReader(0, s.tail...))
	}
	slices.SortStableFunc(list, func(a, b *reader) int { return cmp.Compare(a.minSeq, b.minSeq) })
	return list
}

// run replays the segments.
func (rp *replayer) run(list []*reader) error {
	for range runtime.GOMAXPROCS(0) {
		a, runs := newApplier(rp.s, rp.after), make(chan run, 4)
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
		a.mergeCounts()
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
				a.err = a.apply(r.b.sg, &r.b.entries[k], h)
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
	} else if e := &b.entries[to]; e.Kind == KindSystem { // of no stripe: no applier has to wait
		rp.s.replaySystem(b.sg, e)
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

// read sends the entries of a segment, from its hint as far as that is good and
// from its data otherwise.
func (rp *replayer) read(r *reader, sg *segment.Segment) error {
	upTo := rp.after.UpTo
	if sg.Sealed() {
		if !rp.s.opts.seam.NoHints {
			var done bool
			var err error
			if upTo, done, err = rp.readHint(r, sg); done || err != nil {
				return err
			}
			rp.noteHintless(sg.ID)
		}
		rp.mu.Lock()
		rp.scanned++
		rp.mu.Unlock()
	}
	before := rp.after.SegmentOf(sg.ID)
	err := rp.readData(r, segment.NewFramesAfter(sg, int64(before.Length), before.Foot), upTo)
	if err == io.EOF {
		return nil
	}
	return err
}

func (rp *replayer) noteHintless(id uint32) {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	rp.hintless = append(rp.hintless, id)
}

func (rp *replayer) noteStale(name string) {
	rp.mu.Lock()
	defer rp.mu.Unlock()
	rp.stale = append(rp.stale, name)
}

// errStopped ends a reader whose consumer has stopped.
var errStopped = errors.New("stopped")

// send passes a batch on, unless it is empty.
func (rp *replayer) send(r *reader, b *batch) error {
	if len(b.entries) == 0 {
		rp.free.Put(b)
		return nil
	}
	if err := rp.s.interrupted(); err != nil {
		return err
	}
	rp.s.opts.seam.Progress(b.bytes)
	b.users.Store(1)
	select {
	case r.out <- b:
		return nil
	case <-rp.stop:
		return errStopped
	}
}

// batch returns an empty batch.
func (rp *replayer) batch(sg *segment.Segment) *batch {
	b := rp.free.Get().(*batch)
	b.sg, b.buf, b.entries, b.hashes, b.stops, b.bytes = sg, b.buf[:0], b.entries[:0], b.hashes[:0], b.stops[:0], 0
	return b
}

// add adds an entry whose bytes stay as they are.
func (b *batch) add(seed keydir.Seed, e *format.Entry) {
	if ofNoStripe(e) {
		b.stops = append(b.stops, len(b.entries))
	}
	b.bytes += int64(e.Size)
	b.entries = append(b.entries, *e)
	b.hashes = append(b.hashes, seed.Hash(format.Text(e.Key)))
}

func ofNoStripe(e *format.Entry) bool { return e.Kind == KindNamespaces || e.Kind == KindSystem }

// wants reports whether an entry is of a stripe that is replayed.
func (rp *replayer) wants(e *format.Entry) bool {
	only := rp.s.only
	return only == nil || ofNoStripe(e) || only[keydir.StripeOf(rp.s.man.Seed.Hash(format.Text(e.Key)))]
}

// readHint reads from the hint. Each block is verified before it is used, so what came before a bad
// one is right: the rest is read from the data, after sequence upTo, unless done.
func (rp *replayer) readHint(r *reader, sg *segment.Segment) (upTo uint64, done bool, err error) {
	s, before := rp.s, rp.after.SegmentOf(sg.ID).Length
	upTo = rp.after.UpTo
	hs, err := segment.OpenHint(s.opts.seam.FS, s.dir, sg)
	if err != nil {
		rp.hintFailed(sg, err)
		return upTo, false, nil
	}
	defer func() {
		if err := hs.Close(); err != nil {
			s.opts.Logger.Warn("closing hint", "file", format.HintName(sg.ID), "err", err)
		}
	}()
	for last := uint64(0); ; {
		b := rp.batch(sg)
		hs.Buf, hs.Keys = b.buf, b.keys
		entries, err := hs.Next()
		b.buf, b.keys = hs.Buf, hs.Keys
		if err == nil && len(entries) > 0 {
			if entries[0].Seq <= last {
				err = segment.ErrHint
			}
			last = max(last, entries[len(entries)-1].Seq)
		}
		if err != nil {
			rp.free.Put(b)
			if err == io.EOF {
				return upTo, true, nil
			}
			rp.hintFailed(sg, err)
			return upTo, false, nil
		}
		for i := range entries {
			if e := &entries[i]; e.Seq > rp.after.UpTo && uint64(e.At) >= before && rp.wants(e) {
				b.add(s.man.Seed, e)
			}
		}
		upTo = max(upTo, last)
		if err := rp.send(r, b); err != nil {
			return upTo, false, err
		}
	}
}

// hintFailed has a hint removed that is no good. One of another version stays until the new one takes its name.
func (rp *replayer) hintFailed(sg *segment.Segment, err error) {
	switch {
	case errors.Is(err, ErrVersion):
		rp.s.opts.Logger.Info("hint not used", "file", format.HintName(sg.ID), "err", err)
	case !failure.IsNotExist(err):
		rp.s.opts.Logger.Warn("hint not used", "file", format.HintName(sg.ID), "err", err)
		rp.noteStale(format.HintName(sg.ID))
	}
}

// readData reads from the frames, after sequence upTo. io.EOF is the end.
func (rp *replayer) readData(r *reader, fr *segment.Frames, upTo uint64) error {
	b := rp.batch(fr.Segment)
	for {
		entries, err := rp.frame(fr)
		if err != nil {
			if serr := rp.send(r, b); serr != nil {
				return serr
			}
			return err
		}
		for i := range entries {
			e := &entries[i]
			if e.Seq <= upTo || !rp.wants(e) {
				continue
			}
			n := len(e.Key) + len(e.Elem) + len(e.Inline)
			if len(b.entries) == batchEntries || len(b.entries) > 0 && len(b.buf)+n > cap(b.buf) {
				if err := rp.send(r, b); err != nil {
					return err
				}
				b = rp.batch(fr.Segment)
			}
			left := int(min(batchBytes, fr.End-fr.Pos)) + n // the rest of the segment needs no more
			b.buf = slices.Grow(b.buf, max(n, min(batchBytes-len(b.buf), left)))
			copied := *e // the frame's bytes go when the next one is read
			copied.Key, copied.Elem, copied.Inline = b.keep(e.Key), b.keep(e.Elem), b.keep(e.Inline)
			b.add(rp.s.man.Seed, &copied)
		}
	}
}

// keep copies bytes into the batch, which has room for them.
func (b *batch) keep(bytes []byte) []byte {
	n := len(b.buf)
	b.buf = append(b.buf, bytes...)
	return b.buf[n:len(b.buf):len(b.buf)]
}

// frame reads one frame and judges the end.
func (rp *replayer) frame(fr *segment.Frames) ([]format.Entry, error) {
	at := fr.Pos
	entries, err := fr.Next()
	var bad *segment.BadFrame
	switch {
	case err == nil, err != io.EOF && !errors.As(err, &bad):
		return entries, err
	case fr.Segment.Cut: // all of it was written, and verified, before
		if bad != nil {
			err = &CorruptError{File: fr.Segment.Name, Offset: bad.At, Reason: bad.Reason}
		}
		return nil, err
	case !fr.Segment.Sealed():
		err := rp.s.judgeTail(fr, bad)
		if bad != nil && rp.s.opts.ReadOnly { // by now a writer alongside may have finished it
			if entries, err := fr.Again(); err == nil {
				return entries, nil
			}
		}
		if err != nil {
			return rp.correctFrame(fr, at, err)
		}
		return nil, io.EOF
	case bad != nil:
		return rp.correctFrame(fr, at, &CorruptError{File: fr.Segment.Name, Offset: bad.At, Reason: bad.Reason})
	}
	return nil, err
}
