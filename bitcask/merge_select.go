package bitcask

import (
	"io"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/locate"
	"github.com/stavedb/stave/bitcask/internal/mergeinput"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// selector finds what is live in the inputs of a rewrite, and reads and verifies it, which is half
// of the work. It runs a batch ahead of the goroutine that copies. What it found live may be dead
// when it is copied; that changes nothing, for moving the location decides.
type selector struct {
	s        *Store
	in       *mergeinput.Inputs
	outside  uint64 // lowest sequence of any segment that is not rewritten
	hidden   uint64 // sequence of the last tombstone kept
	pace     pacer
	free     chan *mergeinput.Batch // to be filled
	selected chan *mergeinput.Batch // with keep set, and the records; closed at the end
	stop     chan struct{}          // closed when no more is wanted
	err      error                  // once selected is closed
}

// batchesAhead is how many batches there are: one is filled while the other is copied.
const batchesAhead = 2

func newSelector(rw *rewriter, in []*segment.Segment, outside uint64) *selector {
	sel := &selector{
		s: rw.s, outside: outside, pace: pacer{rw: rw},
		free: make(chan *mergeinput.Batch, batchesAhead), selected: make(chan *mergeinput.Batch), stop: make(chan struct{}),
	}
	sel.in = mergeinput.New(rw.s.inputEnvironment(), in, sel.pace.spend)
	bounds := usualLiveScan
	if rw.o.liveScan != nil {
		bounds = *rw.o.liveScan
	}
	sel.in.ScanLive = func(list []*mergeinput.Input) error { return rw.s.scanLive(list, bounds, sel.pace.spend) }
	for range batchesAhead {
		sel.free <- new(mergeinput.Batch)
	}
	return sel
}

// inputEnvironment is what the inputs of a merge know of the store.
func (s *Store) inputEnvironment() *mergeinput.Environment {
	return &mergeinput.Environment{Fs: s.opts.seam.FS, Dir: s.dir, NoHints: s.opts.seam.NoHints, Logger: s.opts.Logger, Seed: s.man.Seed, RemoveHint: s.removeHint}
}

// run selects until there is nothing left, or stop is closed.
func (sel *selector) run() {
	defer close(sel.selected)
	for done := false; !done; {
		var sw *mergeinput.Batch
		select {
		case sw = <-sel.free:
		case <-sel.stop:
			return
		}
		if done, sel.err = sel.fill(sw); sel.err != nil {
			return
		}
		judge := func(sp *namespace.Space, x *mergeinput.BatchEntry) { sel.judge(sw, sp, x) }
		if sel.err = sel.s.visitBatch(sw, false, judge, sel.visited); sel.err != nil {
			return
		}
		if sel.err = sel.read(sw); sel.err != nil {
			return
		}
		select {
		case sel.selected <- sw:
		case <-sel.stop:
			return
		}
	}
}

// fill takes the next entries into the batch, but for tombstones that have
// nothing left to hide and what a scan says is dead. It reports whether they were the last.
func (sel *selector) fill(sw *mergeinput.Batch) (done bool, err error) {
	sw.Reset()
	for !sw.Full() {
		in, err := sel.in.Next()
		for _, dead := range sel.in.Dead {
			sw.Dropped += dead.Segment.Footer.Records
			sel.pace.passed += dead.Segment.Size.Load()
		}
		sel.in.Dead = sel.in.Dead[:0]
		if err == io.EOF {
			return true, sel.pace.checkIn()
		}
		if err != nil {
			return false, err
		}
		e := &in.Entry
		sel.pace.passed += int64(e.Size)
		if e.Kind.Tombstone() {
			// I6: a tombstone goes only when no segment outside the merge holds anything older. It
			// may stand in two inputs if a merge was interrupted.
			if e.Seq < sel.outside || e.Seq == sel.hidden {
				sw.Dropped++
				continue
			}
			sel.hidden = e.Seq
		}
		scanned := in.Scanned && e.Kind.Plain()
		if scanned && !in.Live.Take(e.At) {
			sw.Dropped++
			continue
		}
		x := sw.Add(e, sel.s.man.Seed.Hash(format.Text(e.Key)), in.Number)
		x.Keep = scanned
		if !x.Long() {
			sw.Bytes += int(x.Size)
		}
	}
	return false, nil
}

// judge decides, under the stripe's lock, whether an entry still says something.
func (sel *selector) judge(sw *mergeinput.Batch, sp *namespace.Space, x *mergeinput.BatchEntry) {
	switch {
	case x.Kind.Tombstone():
		x.Keep = !sel.s.spaces.Dead(x.Namespace) // else fill has decided
	case x.Kind == KindSystem:
		id := sw.Identity(x)
		x.Keep = sel.s.system.Keep(string(id.Key), sel.loc(x), x.Seq, sel.outside, x.Empty)
	case x.Kind == KindNamespaces:
		sel.s.spaces.Mu.Lock()
		defer sel.s.spaces.Mu.Unlock()
		x.Keep = sel.s.spaces.Record == sel.loc(x)
	default:
		id := sw.Identity(x)
		x.Keep = sp != nil && locate.PointsTo(sp.Dir, x.Hash, &id, sel.loc(x))
	}
}

// read reads the records that are kept, but for the long ones.
func (sel *selector) read(sw *mergeinput.Batch) error {
	for i := range sw.Entries {
		x := &sw.Entries[i]
		if !x.Keep || x.Long() {
			continue
		}
		raw, _, err := sel.in.All[x.From].Records.Verified(sw, x)
		if err != nil {
			return sel.in.All[x.From].Blame(err)
		}
		sw.Records = append(sw.Records, raw...)
	}
	return nil
}

// loc is where the keydir has an entry if it is live.
func (sel *selector) loc(x *mergeinput.BatchEntry) keydir.Loc { return sel.in.All[x.From].Loc(x) }

// visited charges the throttle for entries of which only the hint was read.
func (sel *selector) visited(n int) error { return sel.pace.spend(n * lookupCost) }

// lookupCost is what looking an entry up counts as, in bytes read.
const lookupCost = 32

// pacer counts what one goroutine of a rewrite reads and writes.
type pacer struct {
	rw     *rewriter
	spent  int   // bytes read and written since the last look around
	passed int64 // bytes of the inputs dealt with since then
}

// spend counts bytes read or written, and checks at intervals whether to stop.
func (p *pacer) spend(bytes int) error {
	const lookAfter = 64 << 10
	if p.spent += bytes; p.spent < lookAfter {
		return nil
	}
	return p.checkIn()
}

// checkIn reports, throttles, and notices cancellation. What ends one goroutine of
// a rewrite ends the other when it looks.
func (p *pacer) checkIn() error {
	spent, passed, rw := p.spent, p.passed, p.rw
	p.spent, p.passed = 0, 0
	rw.checkMu.Lock()
	defer rw.checkMu.Unlock()
	if rw.ended == nil {
		if err := rw.consult(spent, passed); err != nil {
			rw.ended = mergeinput.NewStopped(err)
		}
	}
	return rw.ended
}
