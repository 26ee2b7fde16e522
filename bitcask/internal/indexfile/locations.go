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

// Count makes it the counts of the segments.
func (x *Locations) Count(ss *segment.Set) {
	for i, sg := range ss.ByID {
		if sg != nil {
			sg.LiveBytes.Store(x.live[i])
		}
	}
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
