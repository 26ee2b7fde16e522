package repair

import (
	"io"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/bitcask/internal/kway"
	"github.com/stavedb/stave/bitcask/internal/segment"
)

// Segments are merged by sequence number, like sorted files.

// source yields the entries of one segment in order.
type source struct {
	sg      *segment.Segment
	next    func() ([]format.Entry, error)
	entries []format.Entry
}

// fill makes sure that an entry is at hand.
func (src *source) fill() error {
	for len(src.entries) == 0 {
		var err error
		if src.entries, err = src.next(); err != nil {
			return err
		}
	}
	return nil
}

// mergeBySequence calls fn for every entry of all sources, lowest sequence first.
func mergeBySequence(list []*source, fn func(sg *segment.Segment, e *format.Entry) error) error {
	var h kway.Heap[*source]
	for _, src := range list {
		if err := src.fill(); err == nil {
			h.Push(src, src.entries[0].Seq)
		} else if err != io.EOF {
			return err
		}
	}
	for h.Len() > 0 {
		src, _ := h.First()
		if err := fn(src.sg, &src.entries[0]); err != nil {
			return err
		}
		src.entries = src.entries[1:]
		if err := src.fill(); err == io.EOF {
			h.Drop()
		} else if err != nil {
			return err
		} else {
			h.Advance(src.entries[0].Seq)
		}
	}
	return nil
}
