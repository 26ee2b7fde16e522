package segment

import (
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/internal/vfs"
)

// Reading a mapped page that is not in memory stops the thread, and with it a share of the
// scheduler, until the disk has answered. A read of the file stops only its goroutine. So pages in
// memory are read through mappings, and all others from files.
//
// Asking the kernel costs more than reading, so it is asked about chunks, and the answer is trusted
// for a while: pages that are being read are the last to be evicted. Of a chunk that is not wholly in
// memory the pages are kept that are, and those that are read from the file since. Who must not wait has
// it asked again for the others: somebody else may have read them. A page that is evicted in between
// costs a wait, as ever.

const (
	chunkShift = 20
	chunkSize  = 1 << chunkShift

	// ResidencyEvery is how long the answer for a chunk holds. Each costs some microseconds, so a
	// thousand chunks in use take about a thousandth of one processor.
	ResidencyEvery = 5 * time.Second
)

// residency caches the answers for the chunks of one mapping.
type residency struct {
	Round  atomic.Uint32 // looks of earlier rounds do not hold
	chunks []chunkResidency
}

type chunkResidency struct {
	look  atomic.Uint32     // round of the last look, times two; plus one if all of the chunk was in memory
	pages vfs.ResidentPages // else what was, or has been since; valid in that round
}

func (r *residency) init(length int) {
	r.Round.Store(1)
	r.chunks = make([]chunkResidency, (length+chunkSize-1)>>chunkShift)
}

// resident reports whether the bytes from at to end are mapped and, as far as is known, in memory. asks says to ask again about
// pages that were not.
func (sg *Segment) resident(at, end int, asks bool) bool {
	if end > len(sg.Data) {
		return false
	}
	round := sg.Residency.Round.Load()
	for c := at >> chunkShift; c<<chunkShift < end; c++ {
		if sg.Residency.chunks[c].look.Load() != round<<1|1 && !sg.look(c, round, at, end, asks) {
			return false
		}
	}
	return true
}

// hasRead notes that the bytes from at to end have been read from the file.
func (sg *Segment) hasRead(at, end int) {
	for c := at >> chunkShift; c<<chunkShift < min(end, len(sg.Data)); c++ {
		first, last := pagesIn(c, at, end)
		sg.Residency.chunks[c].pages.Add(first, last)
	}
}

// pagesIn are the first and the last page of a chunk with bytes from at to end.
func pagesIn(c, at, end int) (first, last int) {
	from := c << chunkShift
	at, end = max(at, from), min(end, from+chunkSize)
	return (at - from) / vfs.ResidentUnit, (end - 1 - from) / vfs.ResidentUnit
}

// look asks about a chunk, unless it has been asked about in this round, and then, if it is to, about the bytes from at to end
// where they were not in memory. Two goroutines that look at the same chunk may both ask, and one may lose what the other has
// learned: then it is asked, or read, once more.
func (sg *Segment) look(c int, round uint32, at, end int, asks bool) bool {
	m := sg.File.(vfs.Mapper)
	from, to := c<<chunkShift, min((c+1)<<chunkShift, int(sg.Size.Load()), len(sg.Data))
	chunk := &sg.Residency.chunks[c]
	if chunk.look.Load() != round<<1 && from < to {
		if m.Resident(sg.Data[from:to], &chunk.pages) {
			chunk.look.Store(round<<1 | 1)
			return true
		}
		chunk.look.Store(round << 1) // after the pages
	}
	first, last := pagesIn(c, at, end)
	if chunk.pages.Has(first, last) {
		return true
	}
	if !asks || !m.Resident(sg.Data[max(at, from):min(end, from+chunkSize)], nil) {
		return false
	}
	chunk.pages.Add(first, last)
	return true
}
