package keydir

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	minSlab = 8  // pages; a new slab is a sixteenth of what there is, from this
	maxSlab = 64 // to this, 256 KiB: one bit of a word for each
)

// slabs is where the full pages of a directory's tables come from: up to 64 of them from one piece
// of memory. The collector looks at each piece once; with millions of keys it would spend most of its time on
// pages, one by one, though there are no pointers in them.
//
// A page comes from the lowest slab that has room, and a table that shrinks moves its pages down. So
// what is free gathers in the slabs above, and those that are empty go back to the collector.
//
//	K9: a page of a slab is free, and its bit of the slab's unused is set, or one table has it.
type slabs struct {
	mu    sync.Mutex
	all   []*slab // by address
	first int     // no slab before this one has room
	pages int     // in all slabs
	free  int     // of them
	bytes *atomic.Int64
}

type slab struct {
	mem    []uint64
	unused uint64
}

func (x *slab) pages() int { return len(x.mem) / pageWords }

func (x *slab) free() int { return bits.OnesCount64(x.unused) }

func addressOf(mem []uint64) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// take returns a page of empty slots.
func (s *slabs) take() []uint64 {
	s.mu.Lock()
	if s.free == 0 {
		s.grow()
	}
	s.advance(len(s.all))
	page := s.claim()
	s.mu.Unlock()
	clear(page)
	return page
}

// grow adds a slab.
func (s *slabs) grow() {
	n := min(max(s.pages/16, minSlab), maxSlab) &^ 1 // the runtime rounds up to 8 KiB
	x := &slab{mem: make([]uint64, n*pageWords), unused: 1<<n - 1}
	i, _ := s.find(x.mem)
	s.all = slices.Insert(s.all, i, x)
	s.first = min(s.first, i)
	s.pages += n
	s.gain(n)
}

// find returns the index of the slab that a page lies in, or of the first one above it.
func (s *slabs) find(page []uint64) (int, bool) {
	return slices.BinarySearchFunc(s.all, addressOf(page), func(x *slab, address uintptr) int {
		start := addressOf(x.mem)
		if start <= address && address < start+uintptr(8*len(x.mem)) {
			return 0
		}
		return cmp.Compare(start, address)
	})
}

// gain counts pages that have become free. Those in use are counted by their tables.
func (s *slabs) gain(pages int) {
	s.free += pages
	s.bytes.Add(int64(pages) * pageBytes)
}

// advance moves first on, past slabs without room, to an index at most.
func (s *slabs) advance(to int) {
	for s.first < to && s.all[s.first].unused == 0 {
		s.first++
	}
}

// claim takes a page of the first slab, which has room.
func (s *slabs) claim() []uint64 {
	x := s.all[s.first]
	at := bits.TrailingZeros64(x.unused) * pageWords
	x.unused &= x.unused - 1
	s.gain(-1)
	return x.mem[at : at+pageWords : at+pageWords]
}

// give takes a page back.
func (s *slabs) give(page []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.find(page)
	if !ok {
		panic("BUG: keydir: page of no slab")
	}
	x := s.all[i]
	x.unused |= 1 << (int(addressOf(page)-addressOf(x.mem)) / pageBytes)
	s.first = min(s.first, i)
	s.gain(1)
	switch {
	case s.free == s.pages:
		s.gain(-s.free)
		s.all, s.first, s.pages = nil, 0, 0
	case x.free() == x.pages() && s.free >= 2*x.pages(): // else it is kept for the next page that is needed
		s.gain(-x.pages())
		s.pages -= x.pages()
		s.all = slices.Delete(s.all, i, i+1)
	}
}

// lower moves a page down if there is room, and returns where it is then.
func (s *slabs) lower(page []uint64) []uint64 {
	s.mu.Lock()
	i, _ := s.find(page)
	if s.advance(i); s.first >= i {
		s.mu.Unlock()
		return page
	}
	down := s.claim()
	s.mu.Unlock()
	copy(down, page)
	s.give(page)
	return down
}
