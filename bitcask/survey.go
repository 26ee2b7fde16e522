package bitcask

import (
	"maps"
	"math"
	"slices"

	"github.com/stavedb/stave/keydir"
)

// A survey finds what is live among the strings and deadlines of some inputs of a merge. To look each of their entries up in the
// keydir is to miss the processor's cache for each, for most of them only to learn that it is dead. A survey goes the other way: once
// through all slots of the keydir, in the order of memory, noting which places in the inputs they point to. The entries of an input
// come in order of place, so the places, sorted, are all that is needed to tell which are live.
//
// What is in the inputs is sealed: a place that no slot points to will never be pointed to again, and one that was overwritten or
// deleted since is found out when its location is to move. Elements of collections have no slots; they are looked up (sweep.go).

const (
	// surveyLive is about how many places a survey notes, of four bytes each.
	surveyLive = 8 << 20
	// surveySpan is how far apart the ids of its inputs are at most.
	surveySpan = 1 << 16
	// surveyWorth is how many slots may be looked through for each entry that need not be looked up: going on to the next slot is
	// some fifty times quicker than a look into the keydir.
	surveyWorth = 16
	// surveyHold is how many slots are looked at while a stripe is locked: some 10 us' worth.
	surveyHold = 2048
	// slotCost is what looking at a slot counts as, in bytes read.
	slotCost = 2
)

// survey finds what is live in the first of the given inputs, and in as many more as one survey serves. It leaves that to looking the
// entries up if that is less work.
func (s *Store) survey(inputs []*input, spend func(bytes int) error) error {
	of := newSurveyed(inputs)
	slots := 0
	for _, sp := range s.spaces.now.Load().byID {
		slots += sp.dir.Len() + sp.dir.LenDeadlines()
	}
	if slots > surveyWorth*of.records {
		return nil
	}
	for stripe := range keydir.Stripes {
		if err := s.eachSlot(stripe, of.note, func(n int) error { return spend(n * slotCost) }); err != nil {
			return err
		}
	}
	for _, in := range of.inputs {
		slices.Sort(in.live)
		in.surveyed = true
	}
	return nil
}

// surveyed is the inputs of one survey.
type surveyed struct {
	inputs  []*input
	byID    []*input // from first on
	first   uint32
	records int // in all of them
}

// newSurveyed takes as many of the inputs as one survey serves, at least one.
func newSurveyed(inputs []*input) *surveyed {
	of := &surveyed{first: math.MaxUint32}
	last, live := uint32(0), 0.0
	for _, in := range inputs {
		sg := in.sg
		low, high := min(of.first, sg.id), max(last, sg.id)
		live += float64(sg.foot.records) * float64(sg.liveBytes.Load()) / float64(sg.size.Load())
		if len(of.inputs) > 0 && (live > surveyLive || high-low >= surveySpan) {
			break
		}
		of.inputs = append(of.inputs, in)
		of.records += int(sg.foot.records)
		of.first, last = low, high
		in.asked = true
	}
	of.byID = make([]*input, last-of.first+1)
	for _, in := range of.inputs {
		of.byID[in.sg.id-of.first] = in
	}
	return of
}

// note is called with every slot.
func (of *surveyed) note(slot keydir.Slot) {
	at := uint64(slot.Loc.Segment()) - uint64(of.first) // of others, also of pending locations, too much
	if at >= uint64(len(of.byID)) || of.byID[at] == nil {
		return
	}
	if slot.Type == keydir.String || slot.Type == keydir.Deadline {
		in := of.byID[at]
		in.live = append(in.live, slot.Loc.Offset())
	}
}

// eachSlot calls fn for the slots of a stripe in every space in use, under the lock of the stripe, and between, with no lock held,
// after every few. Slots that are there throughout are all seen once.
func (s *Store) eachSlot(stripe int, fn func(keydir.Slot), between func(n int) error) error {
	spaces := slices.Collect(maps.Values(s.spaces.now.Load().byID))
	from := uint64(0)
	for len(spaces) > 0 {
		n := 0
		s.stripes[stripe].RLock()
		for len(spaces) > 0 && n < surveyHold {
			n++
			if sp := spaces[0]; s.spaces.byRecord(sp.id) == sp {
				last, more := uint64(0), false
				sp.dir.Scan(stripe, from, func(h uint64, slot keydir.Slot) bool {
					if n >= surveyHold && h != last { // all slots of a hash belong together
						from, more = h, true
						return false
					}
					fn(slot)
					last = h
					n++
					return true
				})
				if more {
					break
				}
			}
			spaces, from = spaces[1:], 0
		}
		s.stripes[stripe].RUnlock()
		if err := between(n); err != nil {
			return err
		}
	}
	return nil
}

// takes reports, of the entry of a string or a deadline that begins at a place, whether the survey found it live. Entries come in
// order of place.
func (in *input) takes(at uint32) (bool, error) {
	switch {
	case len(in.live) == 0 || at < in.live[0]:
		return false, nil
	case at > in.live[0]:
		return false, in.unmet()
	}
	in.live = in.live[1:]
	return true, nil
}

// unmet is the error for a place that the keydir points to and where there was no entry. If it was the hint that had none, the next
// merge reads the data.
func (in *input) unmet() error {
	if len(in.live) == 0 {
		return nil
	}
	if in.hint != nil {
		in.s.removeHint(in.sg)
	}
	return &CorruptError{in.sg.name, int64(in.live[0]), "no record where the index has one"}
}
