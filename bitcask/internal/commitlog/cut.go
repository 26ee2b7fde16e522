package commitlog

import (
	"fmt"
	"slices"
	"time"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// CutSegment is a segment at one moment.
type CutSegment struct {
	*segment.Segment
	Foot   format.Footer // what its footer says, or would say
	Frames int64         // where its frames end; 0 if it is sealed
}

// Cut is the log at a moment between two commits, and the sequence number after its last record. It delays others only
// for one pass over the list of segments. at is called with the log locked, unless it is nil: it must not use the log,
// and must be O(1). The listed segments hold everything written before: a merge lists its output,
// and removes its inputs, only when all that it relied on is in the log.
func (l *Log) Cut(at func()) (list []CutSegment, next uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return nil, 0, l.failed
	}
	list = l.segmentsLocked()
	for i := range list {
		if list[i].Segment == l.active && !l.shown {
			list[i].Foot.Time = time.Now().UnixMilli()
		}
	}
	if at != nil {
		at()
	}
	return list, l.writeSeq, nil
}

// Segments is Cut for callers that need neither a time nor the state of the store.
func (l *Log) Segments() (list []CutSegment, next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segmentsLocked(), l.writeSeq
}

func (l *Log) segmentsLocked() (list []CutSegment) {
	sl := l.rotation.sealing
	for _, sg := range l.env.Segments.Load().All() {
		c := CutSegment{Segment: sg, Frames: sg.Size.Load()}
		switch {
		case sg.Sealed():
			c.Foot, c.Frames = sg.Footer, 0
		case sg == l.active:
			c.Foot = l.foot
		case sl != nil && sg == sl.sg:
			c.Foot, c.Frames = sl.foot, sl.end // its footer may be under way
		default:
			c.Foot = sg.Footer // ready for use and empty; or not, in a store open for reading
		}
		if c.Frames > 0 && sg.HasFooter {
			c.Frames -= format.FooterSize
		}
		list = append(list, c)
	}
	return list
}

// FootOf returns what a footer of the segment says or would say now, whether
// it is sealed, and whether it counts at all: one that waits to be used does
// not.
func (l *Log) FootOf(sg *segment.Segment) (ft format.Footer, sealed, listed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sl := l.rotation.sealing
	switch {
	case sg == l.active:
		return l.foot, false, true
	case sl != nil && sg == sl.sg:
		return sl.foot, false, true
	}
	return sg.Footer, sg.Sealed(), sg.Size.Load() > format.SegmentHeaderSize
}

// Split returns the segments with the given ids, all of which must be sealed, and the sequence number below
// which no tombstone hides anything outside of them.
func (l *Log) Split(ids []uint32) (in []*segment.Segment, outside uint64, err error) {
	l.mu.Lock() // no rotation until then
	defer l.mu.Unlock()
	if l.failed != nil {
		return nil, 0, l.failed
	}
	outside = l.oldestLocked()
	for _, sg := range l.env.Segments.Load().All() {
		switch {
		case !sg.Sealed():
		case slices.Contains(ids, sg.ID):
			in = append(in, sg)
		case sg.Footer.Records > 0:
			outside = min(outside, sg.Hidable(sg.Footer.MinSeq))
		}
	}
	if len(in) != len(ids) {
		return nil, 0, fmt.Errorf("segments %v: not all of them are sealed and there", ids)
	}
	return in, outside, nil
}

// oldestLocked is the lowest sequence number in any unsealed segment.
func (l *Log) oldestLocked() uint64 {
	if sl := l.rotation.sealing; sl != nil {
		return sl.foot.MinSeq
	}
	if l.foot.Records > 0 {
		return l.foot.MinSeq
	}
	return l.nextSeq
}

// Mark is the mark of all that has been written, without the number of the opening.
func (l *Log) Mark() (format.Mark, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := format.Mark{Sequence: l.writeSeq - 1, Segment: l.active.ID, Length: uint64(l.active.Size.Load())}
	var err error
	m.Sum, err = l.active.EndSum(int64(m.Length))
	return m, err
}
