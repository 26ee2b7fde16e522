package ttl

import (
	"encoding/binary"
	"strings"
)

// slab holds deadlines and keys in few large pieces without pointers, so that the garbage collector does not see them one
// by one. A block is addressed by a ref:
//
//	+--------------------+---------+------------------+---------+
//	| deadline, 8 bytes  | n, 1 B  | key, n bytes     | padding |
//	+--------------------+---------+------------------+---------+
//
// Blocks are multiples of unit bytes. A freed one goes to the list of its size and is used again for the same size only; what
// varying key lengths leave behind is bounded by the peak of each length and given back when the shard is empty.
// Keys longer than maxInline are ordinary strings beside it: there n is longKey and no key bytes follow.
type slab struct {
	chunks [][]byte
	next   ref              // First never used address.
	free   [sizeClasses]ref // Freed blocks by size in units, linked through their first 4 bytes.
	long   map[ref]string   // Keys that are not inline.
}

// ref is a block's address in units. 0 is no block. 2^32 units are 16 GiB, some 600 million keys in each shard.
type ref uint32

const (
	unit        = 4                               // bytes
	blockHeader = 9                               // bytes: deadline and n
	maxInline   = 254                             // bytes of key
	longKey     = 255                             // n of a key that is longer
	minUnits    = (blockHeader + unit - 1) / unit // Of the empty key's block.
	sizeClasses = (blockHeader+maxInline)/unit + 2

	chunkShift = 14
	chunkUnits = 1 << chunkShift // 64 KiB
	firstChunk = 256             // bytes; the last chunk doubles until it is full size
)

// blockUnits returns the size of the block for a key of n inline bytes.
func blockUnits(n int) ref { return ref(blockHeader+n+unit-1) / unit }

// inlineLen returns how many bytes of a key of length n are in its block.
func inlineLen(n int) int {
	if n > maxInline {
		return 0
	}
	return n
}

// block returns the bytes from a block's start to the end of its chunk.
func (s *slab) block(r ref) []byte {
	return s.chunks[r>>chunkShift][r%chunkUnits*unit:]
}

func (s *slab) deadline(r ref) int64 { return int64(binary.LittleEndian.Uint64(s.block(r))) }

func (s *slab) setDeadline(r ref, ms int64) { binary.LittleEndian.PutUint64(s.block(r), uint64(ms)) }

// is reports whether the block holds this key.
func (s *slab) is(r ref, key string) bool {
	b := s.block(r)
	if b[8] == longKey {
		return s.long[r] == key
	}
	return string(b[blockHeader:blockHeader+int(b[8])]) == key
}

// key returns a copy of the block's key.
func (s *slab) key(r ref) string {
	b := s.block(r)
	if b[8] == longKey {
		return s.long[r]
	}
	return string(b[blockHeader : blockHeader+int(b[8])])
}

// add makes a block.
func (s *slab) add(key string, ms int64) ref {
	r := s.alloc(blockUnits(inlineLen(len(key))))
	b := s.block(r)
	binary.LittleEndian.PutUint64(b, uint64(ms))
	if len(key) <= maxInline {
		b[8] = byte(len(key))
		copy(b[blockHeader:], key)
		return r
	}
	b[8] = longKey
	if s.long == nil {
		s.long = map[ref]string{}
	}
	s.long[r] = strings.Clone(key) // The caller's may be a piece of something large.
	return r
}

// remove frees a block.
func (s *slab) remove(r ref) {
	n := int(s.block(r)[8])
	if n == longKey {
		delete(s.long, r)
		n = 0
	}
	s.release(r, blockUnits(n))
}

func (s *slab) release(r, units ref) {
	binary.LittleEndian.PutUint32(s.block(r), uint32(s.free[units]))
	s.free[units] = r
}

func (s *slab) alloc(units ref) ref {
	if r := s.free[units]; r != 0 {
		s.free[units] = ref(binary.LittleEndian.Uint32(s.block(r)))
		return r
	}
	if s.next == 0 {
		s.next = 1 // Address 0 means none.
	}
	if rest := -s.next % chunkUnits; rest < units {
		s.skip(rest)
	}
	r := s.next
	if r == 0 || r+units < r {
		panic("BUG: more deadlines in one shard than 32-bit addresses reach")
	}
	s.reserve(r, units)
	s.next += units
	return r
}

// skip gives the rest of the last chunk, too small for what is wanted, to the free lists.
func (s *slab) skip(rest ref) {
	if rest >= minUnits {
		s.reserve(s.next, rest)
		s.release(s.next, rest)
	}
	s.next += rest
}

// reserve makes sure that the units from r on, all in one chunk, exist.
func (s *slab) reserve(r, units ref) {
	i := int(r >> chunkShift)
	if i == len(s.chunks) {
		size := firstChunk
		if i > 0 {
			size = chunkUnits * unit
		}
		s.chunks = append(s.chunks, make([]byte, size))
	}
	end, size := int(r%chunkUnits+units)*unit, len(s.chunks[i])
	if end <= size {
		return
	}
	for size < end {
		size *= 2
	}
	grown := make([]byte, size)
	copy(grown, s.chunks[i])
	s.chunks[i] = grown
}
