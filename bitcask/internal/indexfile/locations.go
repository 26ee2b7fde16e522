package indexfile

import (
	"errors"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
	"github.com/stavedb/stave/keydir"
)

var ErrUnfit = errors.New("index does not fit the log or is damaged")

// Locations checks that locations lead into segments, and counts the bytes
// that they lead to.
type Locations struct {
	base  uint32
	sizes []uint32 // by id - base; 0 where there is no segment
	live  []int64
}

// Add adds what another has counted.
func (x *Locations) Add(y *Locations) {
	for i, n := range y.live {
		x.live[i] += n
	}
}

// Reset makes the counts zero.
func (x *Locations) Reset() { clear(x.live) }

// Fresh returns one of the same segments that has counted nothing.
func (x *Locations) Fresh() Locations {
	return Locations{base: x.base, sizes: x.sizes, live: make([]int64, len(x.live))}
}

// Count makes it the counts of the segments.
func (x *Locations) Count(ss *segment.Set) {
	for i, sg := range ss.ByID {
		if sg != nil {
			sg.LiveBytes.Store(x.live[i])
		}
	}
}

// Promise makes what an INDEX says of its sections the counts of the segments. It reports false if
// that is of a segment that is not there.
func Promise(live map[uint32]int64, ss *segment.Set) bool {
	for id, n := range live {
		sg := ss.Find(id)
		if sg == nil {
			return false
		}
		sg.LiveBytes.Store(n)
	}
	return true
}

// Correct changes the counts of the segments by what it has counted and had not been promised.
func (x *Locations) Correct(live map[uint32]int64, ss *segment.Set) (same bool) {
	same = true
	for i, n := range x.live {
		id := x.base + uint32(i)
		if d := n - live[id]; d != 0 {
			same = false
			if sg := ss.Find(id); sg != nil {
				sg.LiveBytes.Add(d)
			}
		}
	}
	return same
}

// Sum counts the bytes that locations lead to, by segment.
type Sum struct {
	base uint32
	live []int64
}

// NewSum returns a Sum for segments from an id on.
func NewSum(base uint32) *Sum { return &Sum{base: base} }

// See counts a location.
func (x *Sum) See(loc keydir.Loc) {
	i := int(loc.Segment()) - int(x.base)
	if i < 0 {
		return // of no segment: the loader will refuse it
	}
	for i >= len(x.live) {
		x.live = append(x.live, 0)
	}
	x.live[i] += int64(loc.Size())
}

// Live is what was counted.
func (x *Sum) Live() map[uint32]int64 {
	m := make(map[uint32]int64, len(x.live))
	for i, n := range x.live {
		if n > 0 {
			m[x.base+uint32(i)] = n
		}
	}
	return m
}

func (x *Locations) See(loc keydir.Loc) bool {
	i := loc.Segment() - x.base
	if i >= uint32(len(x.sizes)) || loc.Offset() >= x.sizes[i] || loc.Offset() < format.SegmentHeaderSize {
		return false
	}
	x.live[i] += int64(loc.Size())
	return true
}

func NewLocations(ss *segment.Set) Locations {
	n := len(ss.ByID)
	x := Locations{base: ss.Base, sizes: make([]uint32, n), live: make([]int64, n)}
	for i, sg := range ss.ByID {
		if sg != nil {
			x.sizes[i] = uint32(min(sg.Size.Load(), 1<<32-1))
		}
	}
	return x
}
