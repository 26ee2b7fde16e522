// Package kway orders the sources of a k-way merge by sequence number.
//
// Replaying the log, merging segments and salvaging a store each read many segments as one, lowest sequence number
// first. Heap says which source is next; what a source is, and how it proceeds, is the caller's affair. A Heap is for
// one goroutine.
package kway

import "math"

// Heap holds the sources that have an entry at hand, by the sequence number of that entry. The zero value is empty.
// Every change takes time in the order of log n, or is constant where the first source stays the first.
type Heap[S any] struct{ list []item[S] }

type item[S any] struct {
	seq    uint64
	source S
}

// Len is the number of sources.
func (h *Heap[S]) Len() int { return len(h.list) }

// First is the source with the lowest sequence number, and that number. The heap must not be empty.
func (h *Heap[S]) First() (S, uint64) { return h.list[0].source, h.list[0].seq }

// Second is the lowest sequence number of all sources but the first; the highest number there is if there are none.
func (h *Heap[S]) Second() uint64 {
	second := uint64(math.MaxUint64)
	for i := 1; i < min(len(h.list), 3); i++ {
		second = min(second, h.list[i].seq)
	}
	return second
}

// Due reports whether a source that has nothing below seq is to be pushed before the first source is read.
func (h *Heap[S]) Due(seq uint64) bool { return len(h.list) == 0 || seq <= h.list[0].seq }

// Push adds a source.
func (h *Heap[S]) Push(s S, seq uint64) {
	h.list = append(h.list, item[S]{seq, s})
	for i := len(h.list) - 1; i > 0; {
		parent := (i - 1) / 2
		if h.list[parent].seq <= h.list[i].seq {
			break
		}
		h.list[i], h.list[parent] = h.list[parent], h.list[i]
		i = parent
	}
}

// Advance says that the first source has gone on to an entry with a higher sequence number.
func (h *Heap[S]) Advance(seq uint64) {
	h.list[0].seq = seq
	h.sink()
}

// Drop removes the first source.
func (h *Heap[S]) Drop() {
	last := len(h.list) - 1
	h.list[0] = h.list[last]
	h.list[last] = item[S]{} // so that it can be collected
	h.list = h.list[:last]
	h.sink()
}

// sink moves the first item down to its place.
func (h *Heap[S]) sink() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h.list) {
			return
		}
		if right := child + 1; right < len(h.list) && h.list[right].seq < h.list[child].seq {
			child = right
		}
		if h.list[i].seq <= h.list[child].seq {
			return
		}
		h.list[i], h.list[child] = h.list[child], h.list[i]
		i = child
	}
}
