package repair

import (
	"container/heap"
	"io"

	"github.com/stavedb/stave/bitcask/internal/format"
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

// sources is a heap by the sequence of the entry at hand.
type sources []*source

func (h sources) Len() int           { return len(h) }
func (h sources) Less(i, j int) bool { return h[i].entries[0].Seq < h[j].entries[0].Seq }
func (h sources) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *sources) Push(x any)        { *h = append(*h, x.(*source)) }
func (h *sources) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// mergeBySequence calls fn for every entry of all sources, lowest sequence first.
func mergeBySequence(list []*source, fn func(sg *segment.Segment, e *format.Entry) error) error {
	var h sources
	for _, src := range list {
		if err := src.fill(); err == nil {
			h = append(h, src)
		} else if err != io.EOF {
			return err
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		src := h[0]
		if err := fn(src.sg, &src.entries[0]); err != nil {
			return err
		}
		src.entries = src.entries[1:]
		if err := src.fill(); err == io.EOF {
			heap.Pop(&h)
			continue
		} else if err != nil {
			return err
		}
		// Segments mostly follow one another: look before re-sorting.
		if len(h) > 1 {
			heap.Fix(&h, 0)
		}
	}
	return nil
}
