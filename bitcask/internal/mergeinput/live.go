package mergeinput

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/stavedb/stave/bitcask/internal/failure"
	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// liveBitmap is the places of an input where live strings and deadlines begin, that have not been met yet.
type liveBitmap struct {
	Places []uint64 // a bit for each PlaceSize bytes
	n      int
}

// at is the word and the bit of a position. Positions after the end of the input map to the last bit: no entry is
// there.
func (l *liveBitmap) at(place uint32) (word *uint64, bit uint64) {
	i := min(int(place/(64*PlaceSize)), len(l.Places)-1)
	return &l.Places[i], 1 << (place / PlaceSize % 64)
}

// first is about where the first of them begins.
func (l *liveBitmap) first() int64 {
	i := slices.IndexFunc(l.Places, func(word uint64) bool { return word != 0 })
	return int64(64*i+bits.TrailingZeros64(l.Places[i])) * PlaceSize
}

func (l *liveBitmap) Add(place uint32) {
	if word, bit := l.at(place); *word&bit == 0 {
		*word |= bit
		l.n++
	}
}

// Take reports whether a live record begins at a place, once.
func (l *liveBitmap) Take(place uint32) bool {
	word, bit := l.at(place)
	if *word&bit == 0 {
		return false
	}
	*word &^= bit
	l.n--
	return true
}

// PlaceSize is a number of bytes in which at most one record begins: none is shorter.
const PlaceSize = format.RecordHeaderMin

// missingEntry is the error, at the end of an input, for a place that the keydir points to and where there was no
// entry. If it was the hint that had none, the next merge reads the data.
func (in *Input) missingEntry() error {
	switch {
	case in.Live.n == 0:
		return nil
	case in.hint != nil:
		in.removeHint()
		return fmt.Errorf("%s: no entry for offset %d: %w", format.HintName(in.Segment.ID), in.Live.first(), segment.ErrHint)
	}
	return &failure.CorruptError{File: in.Segment.Name, Offset: in.Live.first(), Reason: "no record where the index has one"}
}
