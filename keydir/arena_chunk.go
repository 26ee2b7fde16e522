package keydir

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// newChunk makes an empty chunk and returns its index.
func (a *arena) newChunk(size int) int {
	if a.chunks.n == maxChunks {
		panic("BUG: keydir: arena needs more than 16 GiB")
	}
	var c chunk
	if len(a.cached) == size {
		c.mem, a.cached = a.cached, nil
	} else {
		c.mem = make([]byte, size)
		a.account(size)
	}
	if n := len(a.spare); n > 0 {
		i := a.spare[n-1]
		a.spare = a.spare[:n-1]
		*a.chunks.at(int(i)) = c
		return int(i)
	}
	a.account(int(unsafe.Sizeof(c)))
	return a.chunks.push(c)
}

// full reports whether the arena has that many chunks.
func (a *arena) full(most int) bool { return a.chunks.n-len(a.spare) >= most }

// releaseChunk releases a chunk in which no block has a handle.
func (a *arena) releaseChunk(n int) {
	a.unlinkAll(n)
	c := a.chunks.at(n)
	if !c.private {
		a.total -= len(c.mem)
	}
	a.cacheChunk(c.mem)
	if n == a.openChunk {
		a.openChunk = -1
	}
	*c = chunk{}
	a.spare = append(a.spare, uint32(n))
}

// cacheChunk keeps a released chunk's memory for the next chunk, or leaves it to the garbage
// collector. The arena of a big collection keeps it, because its growth would be mostly
// garbage otherwise; no slice of it outlives a change of the collection. The arena that small
// collections share must not: names of one collection stay valid while others change.
func (a *arena) cacheChunk(mem []byte) {
	if a.reuse && a.cached == nil && len(mem) == a.chunkSize(0) {
		a.cached = mem
		return
	}
	a.account(-len(mem))
	if len(a.cached) > a.chunkSize(0) { // the arena has shrunk
		a.account(-len(a.cached))
		a.cached = nil
	}
}

// chunkSize returns the size of the next chunk, which must fit a block of that size.
func (a *arena) chunkSize(block int) int {
	return min(1<<bits.Len(uint(max(a.total/16, block, minChunk)-1)), maxChunk)
}

// evacuate empties the chunk with the most free bytes among victimTries chunks, and releases
// it. That copies at most one chunk, about ten microseconds.
func (a *arena) evacuate() {
	victim, most := -1, 0
	for range min(victimTries, a.chunks.n) {
		a.nextVictim = (a.nextVictim + 1) % a.chunks.n
		c := a.chunks.at(a.nextVictim)
		if free := int(c.top - c.live); free > most && free*16 >= len(c.mem) && a.nextVictim != a.openChunk {
			victim, most = a.nextVictim, free
		}
	}
	if victim < 0 {
		return
	}
	a.unlinkAll(victim) // else blocks would move from the chunk into itself
	mem := a.chunks.at(victim).mem
	for top := int(a.chunks.at(victim).top); len(mem) > 0 && top > 0; {
		h, size := handleOf(mem), int(binary.LittleEndian.Uint16(mem[4:]))*wordBytes
		if h != 0 {
			address := a.placeBlock(h, size/wordBytes)
			copy(a.blockAt(address)[headerBytes:], mem[headerBytes:size])
			a.setAddress(h, address)
		}
		mem, top = mem[size:], top-size
	}
	a.chunks.at(victim).top = 0
	a.releaseChunk(victim)
}

// links returns the neighbours of a free block in its list.
func links(b []byte) (next, prev uint32) {
	return binary.LittleEndian.Uint32(b[headerBytes:]), binary.LittleEndian.Uint32(b[headerBytes+4:])
}

func setLinks(b []byte, next, prev uint32) {
	binary.LittleEndian.PutUint32(b[headerBytes:], next)
	binary.LittleEndian.PutUint32(b[headerBytes+4:], prev)
}

// push makes a free block at an address. One too small for links is in no list, but it
// counts as free until its neighbour absorbs it or its chunk is released.
func (a *arena) push(address uint32, words int) {
	setHeader(a.chunks.at(int(address >> offsetBits)).mem[address&(1<<offsetBits-1)*wordBytes:], 0, words)
	a.free += words * wordBytes
	if words < minWords {
		return
	}
	i := bin(words)
	head := a.bins[i]
	if head != noAddress {
		b := a.blockAt(head)
		next, _ := links(b)
		setLinks(b, next, address)
	}
	setLinks(a.blockAt(address), head, noAddress)
	a.bins[i] = address
	a.filled |= 1 << i
}

// unlink removes a free block from its list.
func (a *arena) unlink(address uint32) {
	b := a.blockAt(address)
	a.free -= len(b)
	if len(b) < minWords*wordBytes {
		return
	}
	next, prev := links(b)
	if next != noAddress {
		n := a.blockAt(next)
		after, _ := links(n)
		setLinks(n, after, prev)
	}
	if prev != noAddress {
		p := a.blockAt(prev)
		_, before := links(p)
		setLinks(p, next, before)
		return
	}
	i := bin(len(b) / wordBytes)
	a.bins[i] = next
	if next == noAddress {
		a.filled &^= 1 << i
	}
}

// unlinkAll removes the free blocks of a chunk from their lists.
func (a *arena) unlinkAll(n int) {
	c := a.chunks.at(n)
	for offset := 0; offset < int(c.top); {
		b := c.mem[offset:]
		if handleOf(b) == 0 {
			a.unlink(uint32(n)<<offsetBits | uint32(offset/wordBytes))
		}
		offset += int(binary.LittleEndian.Uint16(b[4:])) * wordBytes
	}
}

// account adds to the count of bytes that the arena holds.
func (a *arena) account(delta int) {
	a.held += delta
	a.bytes.Add(int64(delta))
}
