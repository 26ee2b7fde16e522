package keydir

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
)

const (
	wordBytes   = 8 // blocks are made of words
	headerBytes = 6 // of a block: handle (4 bytes), size in words (2)
	minWords    = 2 // a free block must hold the links of its list

	offsetBits = 13                     // of an address: words into the chunk
	maxChunks  = 1 << (31 - offsetBits) // 16 GiB in one arena
	// spareChunks exceeds the needs of a single change and of memory not yet released: an arena
	// counts as full before it is.
	spareChunks = maxChunks / 256
	minChunk    = 1 << 10                 // bytes; a new chunk is a sixteenth of the arena, at least this
	maxChunk    = wordBytes << offsetBits // bytes, 64 KiB
	maxShared   = maxChunk / 8            // bytes; a bigger block gets a chunk of its own
	foreign     = uint32(1) << 31         // marks an entry of addr that is the owner's, not an address
	noAddress   = ^uint32(0)              // ends a free list
	binCount    = 64                      // free lists
	victimTries = 64                      // chunks examined to find one to empty
)

// arena allocates blocks of some bytes to some kilobytes from chunks without pointers, so
// that the garbage collector marks one object per chunk and not one per block. Blocks are
// known by handles and may move when the arena changes.
//
//	block: +----------------+-------------+-----------------+
//	       | handle, 32 bit | words, 16   | payload         |
//	       +----------------+-------------+-----------------+
//	free:  | 0              | words       | next 4 | prev 4 |
//
// Freed blocks go to lists by size and are reused, split if necessary. Fragmentation is
// bounded: when more than an eighth of the arena is free, a sparse chunk is emptied into the
// others and released. Its memory is not overwritten, so a slice of a payload stays intact
// until its own block changes.
//
//	K3: addr[h] is the address of the block whose header says h.
//	K4: a chunk's live is the sum of the sizes of its blocks with a handle.
//	K5: the free blocks of all chunks are in bins, each once, and add up to free.
type arena struct {
	chunks      paged[chunk]
	spare       []uint32         // indexes in chunks without memory
	addr        paged[uint32]    // by handle; that of handle 0 is not used
	freeHandles uint32           // head of the list of free handles, linked through addr
	openChunk   int              // the chunk that new blocks come from, -1 for none
	nextVictim  int              // where the next search for a chunk to empty begins
	total       int              // bytes of all shared chunks
	free        int              // bytes of free blocks
	filled      uint64           // bit i: bins[i] is not empty
	bins        [binCount]uint32 // heads of the free lists
	held        int              // bytes of all chunks, and what the owner accounts
	cached      []byte           // memory of a released chunk, for the next; of arenas that reuse
	reuse       bool             // see cacheChunk
	bytes       *atomic.Int64    // what all arenas and tables of the directory hold
}

// chunk is one piece of the arena's memory. Blocks fill it from the start to top.
type chunk struct {
	mem     []byte
	top     int32 // bytes taken by blocks, free ones included
	live    int32 // bytes of blocks with a handle
	private bool  // holds one block too big to share
}

// init makes an empty arena. bytes counts the memory of all arenas of a directory.
func (a *arena) init(bytes *atomic.Int64) {
	a.bytes = bytes
	a.openChunk = -1
	a.addr.push(0)
	for i := range a.bins {
		a.bins[i] = noAddress
	}
}

// bin returns the free list for blocks of that many words: one list for each size below 16,
// eight for each doubling above, and the last for blocks bigger than any request.
func bin(words int) int {
	exp := max(bits.Len(uint(words))-4, 0)
	return min(8*exp+words>>exp-minWords, binCount-1)
}

// roundWords rounds up to one of 16 sizes per doubling, so that a growing block moves seldom
// and freed blocks fit others.
func roundWords(words int) int {
	exp := max(bits.Len(uint(words))-5, 0)
	return (words + 1<<exp - 1) >> exp << exp
}

func wordsFor(payload int) int {
	return roundWords(max((payload+headerBytes+wordBytes-1)/wordBytes, minWords))
}

// newHandle returns a handle without a block, a free one if there is any.
func (a *arena) newHandle() uint32 {
	if h := a.freeHandles; h != 0 {
		a.freeHandles = a.address(h)
		a.setAddress(h, 0)
		return h
	}
	a.account(4)
	return uint32(a.addr.push(0))
}

func (a *arena) freeHandle(h uint32) {
	a.setAddress(h, a.freeHandles)
	a.freeHandles = h
}

func (a *arena) address(h uint32) uint32 { return *a.addr.at(int(h)) }

func (a *arena) setAddress(h, address uint32) { *a.addr.at(int(h)) = address }

func (a *arena) chunkOf(address uint32) *chunk { return a.chunks.at(int(address >> offsetBits)) }

// blockAt returns the block at an address, header included, with its capacity cut to it.
func (a *arena) blockAt(address uint32) []byte {
	mem := a.chunkOf(address).mem[address&(1<<offsetBits-1)*wordBytes:]
	size := int(binary.LittleEndian.Uint16(mem[4:])) * wordBytes
	return mem[:size:size]
}

// block returns the payload of a handle's block.
func (a *arena) block(h uint32) []byte { return a.blockAt(a.address(h))[headerBytes:] }

func setHeader(b []byte, handle uint32, words int) {
	binary.LittleEndian.PutUint32(b, handle)
	binary.LittleEndian.PutUint16(b[4:], uint16(words))
}

func handleOf(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// alloc gives the handle a block with room for that many bytes of payload. The content of
// the payload is undefined.
func (a *arena) alloc(h uint32, payload int) []byte {
	a.setAddress(h, a.placeBlock(h, wordsFor(payload)))
	a.compact()
	return a.block(h)
}

// release frees the block of a handle, not the handle.
func (a *arena) release(h uint32) {
	a.freeBlock(a.address(h))
	a.setAddress(h, 0)
	a.compact()
}

// resize fits the handle's block to that many bytes of payload. The payload is kept as far as
// it fits.
func (a *arena) resize(h uint32, payload int) []byte {
	address := a.address(h)
	b := a.blockAt(address)
	have, want := len(b)/wordBytes, wordsFor(payload)
	switch {
	case want > have:
		if a.widen(address, have, want) {
			return a.block(h)
		}
		moved := a.placeBlock(h, want)
		copy(a.blockAt(moved)[headerBytes:], b[headerBytes:])
		a.setAddress(h, moved)
		a.freeBlock(address)
	case have-want >= max(minWords, have/8):
		a.narrow(address, h, have, want)
	default:
		return b[headerBytes:]
	}
	a.compact()
	return a.block(h)
}

// placeBlock makes a block and returns its address: from a free block, else at the end of
// the open chunk, else in a new chunk.
func (a *arena) placeBlock(h uint32, words int) uint32 {
	size := words * wordBytes
	if size > maxShared {
		c := a.newChunk(size)
		a.chunks.at(c).private = true
		return a.appendBlock(c, 0, h, words)
	}
	if address := a.findFree(words); address != noAddress {
		have := len(a.blockAt(address)) / wordBytes
		a.unlink(address)
		if have-words >= 4 {
			a.push(address+uint32(words), have-words)
			have = words
		}
		setHeader(a.blockAt(address), h, have)
		a.chunks.at(int(address >> offsetBits)).live += int32(have * wordBytes)
		return address
	}
	if a.openChunk >= 0 {
		c := a.chunks.at(a.openChunk)
		if int(c.top)+size <= len(c.mem) {
			return a.appendBlock(a.openChunk, int(c.top), h, words)
		}
		a.closeChunk()
	}
	a.openChunk = a.newChunk(a.chunkSize(size))
	a.total += len(a.chunks.at(a.openChunk).mem)
	return a.appendBlock(a.openChunk, 0, h, words)
}

// appendBlock makes a block at the end of a chunk.
func (a *arena) appendBlock(c, offset int, h uint32, words int) uint32 {
	ch := a.chunks.at(c)
	setHeader(ch.mem[offset:], h, words)
	ch.top += int32(words * wordBytes)
	ch.live += int32(words * wordBytes)
	return uint32(c)<<offsetBits | uint32(offset/wordBytes)
}

// closeChunk makes a free block of the rest of the open chunk.
func (a *arena) closeChunk() {
	c := a.chunks.at(a.openChunk)
	rest := (len(c.mem) - int(c.top)) / wordBytes
	address := uint32(a.openChunk)<<offsetBits | uint32(int(c.top)/wordBytes)
	c.top = int32(len(c.mem))
	a.openChunk = -1
	if rest > 0 {
		a.push(address, rest)
	}
}

// findFree returns the address of a free block of at least that many words, or noAddress.
func (a *arena) findFree(words int) uint32 {
	const tries = 4
	i := bin(words)
	address := a.bins[i] // blocks of the same list may be a little too small
	for range tries {
		if address == noAddress {
			break
		}
		b := a.blockAt(address)
		if len(b) >= words*wordBytes {
			return address
		}
		address, _ = links(b)
	}
	// From other lists, take a block that is slightly bigger or one that splits into useful
	// halves. Splitting a block between these sizes would leave a useless rest.
	const doubled = 8 // lists up
	larger := a.filled &^ (1<<(i+1) - 1)
	if larger&(1<<(i+1)) == 0 {
		larger &= ^uint64(0) << (i + doubled)
	}
	if larger == 0 {
		return noAddress
	}
	return a.bins[bits.TrailingZeros64(larger)]
}

// freeBlock frees the block at an address, joined with the free block after it.
func (a *arena) freeBlock(address uint32) {
	n := address >> offsetBits
	c := a.chunkOf(address)
	size := len(a.blockAt(address))
	c.live -= int32(size)
	if c.live == 0 {
		a.releaseChunk(int(n))
		return
	}
	next := address&(1<<offsetBits-1) + uint32(size/wordBytes)
	if int(next)*wordBytes < int(c.top) {
		next |= n << offsetBits
		if b := a.blockAt(next); handleOf(b) == 0 {
			a.unlink(next)
			size += len(b)
		}
	}
	a.push(address, size/wordBytes)
}

// widen grows a block in place, into the free block or the unused end of the open chunk
// after it.
func (a *arena) widen(address uint32, have, want int) bool {
	n := int(address >> offsetBits)
	c := a.chunks.at(n)
	offset := int(address & (1<<offsetBits - 1))
	end, more := (offset+have)*wordBytes, (want-have)*wordBytes
	switch {
	case want*wordBytes > maxShared:
		return false
	case end == int(c.top):
		if n != a.openChunk || end+more > len(c.mem) {
			return false
		}
		c.top += int32(more)
	default:
		next := address + uint32(have)
		b := a.blockAt(next)
		if handleOf(b) != 0 || len(b) < more {
			return false
		}
		a.unlink(next)
		if rest := (len(b) - more) / wordBytes; rest >= 4 {
			a.push(address+uint32(want), rest)
		} else {
			more = len(b)
		}
	}
	c.live += int32(more)
	mem := c.mem[offset*wordBytes:]
	setHeader(mem, handleOf(mem), have+more/wordBytes)
	return true
}

// narrow frees the end of a block.
func (a *arena) narrow(address, h uint32, have, want int) {
	c := a.chunks.at(int(address >> offsetBits))
	if c.private {
		b := a.blockAt(address)
		moved := a.placeBlock(h, want)
		copy(a.blockAt(moved)[headerBytes:], b[headerBytes:])
		a.setAddress(h, moved)
		a.freeBlock(address)
		return
	}
	b := a.blockAt(address)
	setHeader(b, h, want)
	rest := b[want*wordBytes:]
	setHeader(rest, h, have-want) // a block for a moment, so that freeBlock joins it with the next
	a.freeBlock(address + uint32(want))
}

// compact empties one chunk into the others if more than an eighth of the arena is free.
func (a *arena) compact() {
	if a.free > a.total/8+2*minChunk {
		a.evacuate()
	}
}
