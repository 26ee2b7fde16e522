package mergeselect

import (
	"math"

	"github.com/stavedb/stave/bitcask/internal/mergeinput"
	"github.com/stavedb/stave/bitcask/internal/namespace"
	"github.com/stavedb/stave/keydir"
)

// A live scan finds what is live among the strings and deadlines of some inputs of a merge. Looking up each of their
// entries in the keydir misses the processor's cache for each, for most of them only to find it dead. A live scan goes
// the other way: once through all slots of the keydir, in memory order, setting a bit for each position in the inputs
// that they point to.
//
// The inputs are sealed: a position that no slot points to will never be pointed to again, and one that is overwritten
// or deleted later is noticed when its location is to move. Elements of collections have no slots; they are looked up
// (index.go).

// Bounds are the limits of a scan.
type Bounds struct {
	Bytes int64 // of its inputs: 64 cost one; and an entry that is met late is likelier to have died since the scan
	Span  int   // how far apart their ids are
	Worth int   // slots looked through for each entry that need not be looked up
	Free  int   // slots looked through anyway: that takes half a millisecond
	Hold  int   // slots visited while a stripe is locked
}

// Usual are the limits that serve most stores.
var Usual = Bounds{Bytes: 1 << 30, Span: 1 << 16, Worth: 16, Free: 32 << 10, Hold: 1024}

const (
	// stripeWorth is how many slots it takes the time of to come to the stripe of another space.
	stripeWorth = 2
	// slotCost is what looking at a slot counts as, in bytes read.
	slotCost = 2
)

// liveScan is one that is being made.
type liveScan struct {
	index  *Index
	bounds Bounds
	inputs []*mergeinput.Input
	byID   []*mergeinput.Input // from first on
	first  uint32
	locs   []keydir.Loc // of slots, not yet noted
}

// scanLive finds what is live in the first of the given inputs, and in as many more as one scan serves. If looking up
// the entries is less work, it leaves it to that.
func (ix *Index) scanLive(inputs []*mergeinput.Input, bounds Bounds, spend func(bytes int) error) error {
	sv := &liveScan{index: ix, bounds: bounds}
	records := sv.choose(inputs)
	spaces := ix.Spaces.Now.Load().ByID // a space is there before anything is written to it
	slots := 0
	for _, sp := range spaces {
		slots += sp.Dir.Len() + sp.Dir.LenDeadlines() + stripeWorth*keydir.Stripes
	}
	worth := slots <= bounds.Free+bounds.Worth*records
	for _, in := range sv.inputs {
		in.ScanDecided, in.Scanned = true, worth
		if worth {
			in.Live.Places = make([]uint64, in.Segment.Size.Load()/(64*mergeinput.PlaceSize)+1)
		}
	}
	if !worth {
		return nil
	}
	for _, sp := range spaces {
		for stripe := range keydir.Stripes {
			if err := sv.scanStripe(sp, stripe, spend); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose takes as many of the inputs as one scan serves, at least one, and returns how many records are in them.
func (sv *liveScan) choose(inputs []*mergeinput.Input) (records int) {
	sv.first = math.MaxUint32
	last, bytes := uint32(0), int64(0)
	for _, in := range inputs {
		low, high := min(sv.first, in.Segment.ID), max(last, in.Segment.ID)
		bytes += in.Segment.Size.Load()
		if len(sv.inputs) > 0 && (bytes > sv.bounds.Bytes || int(high-low) >= sv.bounds.Span) {
			break
		}
		sv.inputs = append(sv.inputs, in)
		records += int(in.Segment.Footer.Records)
		sv.first, last = low, high
	}
	sv.byID = make([]*mergeinput.Input, last-sv.first+1)
	for _, in := range sv.inputs {
		sv.byID[in.Segment.ID-sv.first] = in
	}
	return records
}

// scanStripe notes the slots of one stripe of a space.
func (sv *liveScan) scanStripe(sp *namespace.Space, stripe int, spend func(bytes int) error) error {
	for from, more := uint64(0), true; more; {
		var err error
		if from, more, err = sv.hold(sp, stripe, from); err != nil {
			return err
		}
		for _, loc := range sv.locs {
			sv.note(loc)
		}
		if err := spend((len(sv.locs) + stripeWorth) * slotCost); err != nil {
			return err
		}
	}
	return nil
}

// hold notes the locations of some slots, from a hash on and with their stripe locked, and returns where to continue.
// Every record in the log has its slot once its writer has released that lock: so a space that seems empty is scanned
// like any other.
func (sv *liveScan) hold(sp *namespace.Space, stripe int, from uint64) (next uint64, more bool, err error) {
	sv.locs = sv.locs[:0]
	if err := sv.index.Lock(stripe, false); err != nil {
		return 0, false, err
	}
	defer sv.index.Unlock(stripe, false)
	if sv.index.Spaces.ByRecord(sp.ID) != sp {
		return 0, false, nil // flushed
	}
	n, last := 0, uint64(0)
	sp.Dir.Scan(stripe, from, func(h uint64, slot keydir.Slot) bool {
		if n >= sv.bounds.Hold && h != last { // all slots of a hash belong together
			next, more = h, true
			return false
		}
		if slot.Type == keydir.String || slot.Type == keydir.Deadline {
			sv.locs = append(sv.locs, slot.Loc)
		}
		n, last = n+1, h
		return true
	})
	return next, more, nil
}

// note marks a location as live in the input that it leads to, if any.
func (sv *liveScan) note(loc keydir.Loc) {
	i := uint64(loc.Segment()) - uint64(sv.first) // of those before, and of pending ones, far too much
	if i < uint64(len(sv.byID)) && sv.byID[i] != nil {
		sv.byID[i].Live.Add(loc.Offset())
	}
}
