package repair

import (
	"cmp"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/format"
)

// The contents of a hole were written before the next good record of its segment. Segments are read ahead of the
// copying, so the bound comes from the source, not from the record copied next.

// hole is a loss of unknown content.
type hole struct {
	Lost
	src *segmentSource // nil: a file that cannot be read as one
}

// lose notes a hole in a source, if there is one.
func (v *salvager) lose(src *segmentSource, l Lost) {
	v.unnamed = append(v.unnamed, &hole{l, src})
}

// loseBefore notes a hole that the next good record after it bounds.
func (src *segmentSource) loseBefore(l Lost) {
	src.v.lose(src, l)
	src.open = append(src.open, src.v.unnamed[len(src.v.unnamed)-1])
}

// bounded returns the entries of a source, and bounds the holes before them.
func (v *salvager) bounded(src *segmentSource) func() ([]format.Entry, error) {
	next := v.inTime(src)
	return func() ([]format.Entry, error) {
		entries, err := next()
		if len(entries) == 0 {
			return entries, err
		}
		if src.first == 0 {
			src.first = entries[0].Seq
		}
		src.open = slices.DeleteFunc(src.open, func(h *hole) bool {
			i, _ := slices.BinarySearchFunc(entries, h.Offset, func(e format.Entry, at int64) int { return cmp.Compare(int64(e.At), at) })
			if i < len(entries) {
				h.Before = entries[i].Seq
			}
			return i < len(entries)
		})
		return entries, err
	}
}

// boundRest bounds the holes with no good record after them: by what is known of the end of their segment, by the first
// record of the log after it, or by all that was copied.
func (v *salvager) boundRest() {
	for _, h := range v.unnamed {
		if h.Before > 0 {
			continue
		}
		if h.src != nil {
			h.Before = v.endOf(h.src)
		}
		if h.Before == 0 {
			h.Before = v.last + 1
		}
	}
}

// endOf returns a sequence that is above all of a source; 0: unknown.
func (v *salvager) endOf(src *segmentSource) (before uint64) {
	if src.last > 0 {
		last := min(src.last, format.MaxSequence)
		return last + v.moved(src, last) + 1
	}
	for _, other := range v.sources {
		if other.log && !other.remains && other.sg.ID > src.sg.ID && other.first > 0 && (before == 0 || other.first < before) {
			before = other.first
		}
	}
	return before
}
