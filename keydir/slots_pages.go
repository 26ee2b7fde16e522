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
	minSlab = 8  // pages; a new slab is a sixteenth of the pool, at least this
	maxSlab = 64 // pages, 256 KiB: one bit of a word for each
)

// pagePool allocates the full pages of a directory's tables, up to 64 from one slab of
// memory. The garbage collector marks a slab once; with millions of keys and a page each it
// would spend most of its time on pages, though they hold no pointers.
//
// A page comes from the lowest slab that has room, and a table that shrinks moves its pages
// down. So free pages gather in the higher slabs, and empty slabs are released.
//
//	K9: a page of a slab is either free, with its bit in the slab's unused set, or in one table.
type pagePool struct {
	mu    sync.Mutex
	all   []*slab // by address
	first int     // no slab before this one has room
	pages int     // in all slabs
	free  int     // of them
	bytes *atomic.Int64
}

// slab is the memory of up to 64 pages. A set bit of unused is a free page.
type slab struct {
	mem    []uint64
	unused uint64
}

func (x *slab) pages() int { return len(x.mem) / pageWords }

func (x *slab) free() int { return bits.OnesCount64(x.unused) }

func addressOf(mem []uint64) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// get returns a page of empty slots.
func (p *pagePool) get() []uint64 {
	p.mu.Lock()
	if p.free == 0 {
		p.grow()
	}
	p.skipFull(len(p.all))
	page := p.claimLowest()
	p.mu.Unlock()
	clear(page)
	return page
}

// grow adds a slab.
func (p *pagePool) grow() {
	n := min(max(p.pages/16, minSlab), maxSlab) &^ 1 // the runtime rounds up to 8 KiB
	x := &slab{mem: make([]uint64, n*pageWords), unused: 1<<n - 1}
	i, _ := p.find(x.mem)
	p.all = slices.Insert(p.all, i, x)
	p.first = min(p.first, i)
	p.pages += n
	p.addFree(n)
}

// find returns the index of the slab that a page lies in, or of the first one above it.
func (p *pagePool) find(page []uint64) (int, bool) {
	return slices.BinarySearchFunc(p.all, addressOf(page), func(x *slab, address uintptr) int {
		start := addressOf(x.mem)
		if start <= address && address < start+uintptr(8*len(x.mem)) {
			return 0
		}
		return cmp.Compare(start, address)
	})
}

// addFree counts pages that have become free. Tables count the pages in use.
func (p *pagePool) addFree(pages int) {
	p.free += pages
	p.bytes.Add(int64(pages) * pageBytes)
}

// skipFull advances first past slabs without room, up to an index.
func (p *pagePool) skipFull(to int) {
	for p.first < to && p.all[p.first].unused == 0 {
		p.first++
	}
}

// claimLowest takes a page of the first slab, which has room.
func (p *pagePool) claimLowest() []uint64 {
	x := p.all[p.first]
	at := bits.TrailingZeros64(x.unused) * pageWords
	x.unused &= x.unused - 1
	p.addFree(-1)
	return x.mem[at : at+pageWords : at+pageWords]
}

// put releases a page.
func (p *pagePool) put(page []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.find(page)
	if !ok {
		panic("BUG: keydir: page of no slab")
	}
	x := p.all[i]
	x.unused |= 1 << (int(addressOf(page)-addressOf(x.mem)) / pageBytes)
	p.first = min(p.first, i)
	p.addFree(1)
	switch {
	case p.free == p.pages:
		p.addFree(-p.free)
		p.all, p.first, p.pages = nil, 0, 0
	case x.free() == x.pages() && p.free >= 2*x.pages(): // else keep it for the next page
		p.addFree(-x.pages())
		p.pages -= x.pages()
		p.all = slices.Delete(p.all, i, i+1)
	}
}

// moveDown moves a page to a lower slab that has room, if any, and returns the page.
func (p *pagePool) moveDown(page []uint64) []uint64 {
	p.mu.Lock()
	i, _ := p.find(page)
	if p.skipFull(i); p.first >= i {
		p.mu.Unlock()
		return page
	}
	down := p.claimLowest()
	p.mu.Unlock()
	copy(down, page)
	p.put(page)
	return down
}
