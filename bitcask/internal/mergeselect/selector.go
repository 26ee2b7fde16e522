package mergeselect

import (
	"io"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/locate"
	"github.com/stavedb/stave/bitcask/internal/mergeinput"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

// Selector finds what is live in the inputs of a merge, and reads and verifies it, which is half
// of the work. It runs a batch ahead of the goroutine that copies. What it found live may be dead
// when it is copied; that changes nothing, for moving the location decides.
type Selector struct {
	In       *mergeinput.Inputs
	Free     chan *mergeinput.Batch // to be filled
	Selected chan *mergeinput.Batch // with Keep set, and the records; closed at the end
	Stop     chan struct{}          // closed when no more is wanted
	Err      error                  // once Selected is closed

	index   *Index
	outside uint64 // a tombstone below it hides nothing in segments that are not merged
	hidden  uint64 // sequence of the last tombstone kept
	pace    Pacer
}

// batchesAhead is how many batches there are: one is filled while the other is copied.
const batchesAhead = 2

// New returns a selector of segments. A tombstone below outside hides nothing in any other segment.
func New(index *Index, env *mergeinput.Environment, segments []*segment.Segment, outside uint64, bounds Bounds, pace Pacer) *Selector {
	sel := &Selector{
		index: index, outside: outside, pace: pace,
		Free: make(chan *mergeinput.Batch, batchesAhead), Selected: make(chan *mergeinput.Batch), Stop: make(chan struct{}),
	}
	sel.In = mergeinput.New(env, segments, sel.pace.Spend)
	sel.In.ScanLive = func(list []*mergeinput.Input) error { return index.scanLive(list, bounds, sel.pace.Spend) }
	for range batchesAhead {
		sel.Free <- new(mergeinput.Batch)
	}
	return sel
}

// Run selects until there is nothing left, or Stop is closed.
func (sel *Selector) Run() {
	defer close(sel.Selected)
	for done := false; !done; {
		var sw *mergeinput.Batch
		select {
		case sw = <-sel.Free:
		case <-sel.Stop:
			return
		}
		if done, sel.Err = sel.fill(sw); sel.Err != nil {
			return
		}
		judge := func(sp *namespace.Space, x *mergeinput.BatchEntry) { sel.judge(sw, sp, x) }
		if sel.Err = sel.index.Visit(sw, false, judge, sel.visited); sel.Err != nil {
			return
		}
		if sel.Err = sel.read(sw); sel.Err != nil {
			return
		}
		select {
		case sel.Selected <- sw:
		case <-sel.Stop:
			return
		}
	}
}

// fill takes the next entries into the batch, but for tombstones that have
// nothing left to hide and what a scan says is dead. It reports whether they were the last.
func (sel *Selector) fill(sw *mergeinput.Batch) (done bool, err error) {
	sw.Reset()
	for !sw.Full() {
		in, err := sel.In.Next()
		for _, dead := range sel.In.Dead {
			sw.Dropped += dead.Segment.Footer.Records
			sel.pace.Passed += dead.Segment.Size.Load()
		}
		sel.In.Dead = sel.In.Dead[:0]
		if err == io.EOF {
			return true, sel.pace.Report()
		}
		if err != nil {
			return false, err
		}
		e := &in.Entry
		sel.pace.Passed += int64(e.Size)
		if e.Kind.Tombstone() {
			// I6: a tombstone goes only when no segment outside the merge holds anything that it may hide. It
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
		x := sw.Add(e, sel.index.Seed.Hash(format.Text(e.Key)), in.Number)
		x.Keep = scanned
		if !x.Long() {
			sw.Bytes += int(x.Size)
		}
	}
	return false, nil
}

// judge decides, under the stripe's lock, whether an entry still says something.
func (sel *Selector) judge(sw *mergeinput.Batch, sp *namespace.Space, x *mergeinput.BatchEntry) {
	row := format.RowOf(x.Kind, x.Type)
	switch {
	case row.Removes:
		x.Keep = !sel.index.Spaces.Dead(x.Namespace) // else fill has decided
	case row.Home == format.HomeSystem:
		id := sw.Identity(x)
		x.Keep = sel.index.System.Keep(string(id.Key), sel.loc(x), x.Seq, sel.outside, x.Empty)
	case row.Home == format.HomeNamespaces:
		sel.index.Spaces.Mu.Lock()
		defer sel.index.Spaces.Mu.Unlock()
		x.Keep = sel.index.Spaces.Record == sel.loc(x)
	default:
		id := sw.Identity(x)
		x.Keep = sp != nil && locate.PointsTo(sp.Dir, x.Hash, &id, sel.loc(x))
	}
}

// read reads the records that are kept, but for the long ones.
func (sel *Selector) read(sw *mergeinput.Batch) error {
	for i := range sw.Entries {
		x := &sw.Entries[i]
		if !x.Keep || x.Long() {
			continue
		}
		raw, _, err := sel.In.All[x.From].Records.Verified(sw, x)
		if err != nil {
			return sel.In.All[x.From].Blame(err)
		}
		sw.Records = append(sw.Records, raw...)
	}
	return nil
}

// loc is where the keydir has an entry if it is live.
func (sel *Selector) loc(x *mergeinput.BatchEntry) keydir.Loc { return sel.In.All[x.From].Loc(x) }

// visited charges the throttle for entries of which only the hint was read.
func (sel *Selector) visited(n int) error { return sel.pace.Spend(n * LookupCost) }

// LookupCost is what looking an entry up counts as, in bytes read.
const LookupCost = 32
