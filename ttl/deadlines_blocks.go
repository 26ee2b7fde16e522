package ttl

import (
	"encoding/binary"
	"strings"
)

// blockStore holds deadlines and keys in a few large chunks without pointers, so that the garbage collector does not
// mark them one by one. A block is addressed by a ref:
//
//	+--------------------+---------+------------------+---------+
//	| deadline, 8 bytes  | n, 1 B  | key, n bytes     | padding |
//	+--------------------+---------+------------------+---------+
//
// Blocks are multiples of unit bytes. A freed block goes to the list of its size and is reused for the same size only;
// the waste of varying key lengths is bounded by the peak of each length and released when the shard is empty. Keys
// longer than maxInline are ordinary strings in longKeys: their n is longKey and no key bytes follow.
type blockStore struct {
	chunks   [][]byte
	unused   ref              // First never used address.
	free     [sizeClasses]ref // Freed blocks by size in units, linked through their first 4 bytes.
	longKeys map[ref]string   // Keys that are not inline.
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

// bytes returns the bytes from a block's start to the end of its chunk.
func (s *blockStore) bytes(r ref) []byte {
	return s.chunks[r>>chunkShift][r%chunkUnits*unit:]
}

func (s *blockStore) deadline(r ref) int64 { return int64(binary.LittleEndian.Uint64(s.bytes(r))) }

func (s *blockStore) setDeadline(r ref, ms int64) {
	binary.LittleEndian.PutUint64(s.bytes(r), uint64(ms))
}

// holds reports whether the block holds this key.
func (s *blockStore) holds(r ref, key string) bool {
	b := s.bytes(r)
	if b[8] == longKey {
		return s.longKeys[r] == key
	}
	return string(b[blockHeader:blockHeader+int(b[8])]) == key
}

// key returns a copy of the block's key.
func (s *blockStore) key(r ref) string {
	b := s.bytes(r)
	if b[8] == longKey {
		return s.longKeys[r]
	}
	return string(b[blockHeader : blockHeader+int(b[8])])
}

// newBlock makes a block.
func (s *blockStore) newBlock(key string, ms int64) ref {
	r := s.alloc(blockUnits(inlineLen(len(key))))
	b := s.bytes(r)
	binary.LittleEndian.PutUint64(b, uint64(ms))
	if len(key) <= maxInline {
		b[8] = byte(len(key))
		copy(b[blockHeader:], key)
		return r
	}
	b[8] = longKey
	if s.longKeys == nil {
		s.longKeys = map[ref]string{}
	}
	s.longKeys[r] = strings.Clone(key) // The caller's may be part of a larger string.
	return r
}

// freeBlock frees a block.
func (s *blockStore) freeBlock(r ref) {
	n := int(s.bytes(r)[8])
	if n == longKey {
		delete(s.longKeys, r)
		n = 0
	}
	s.addFree(r, blockUnits(n))
}

func (s *blockStore) addFree(r, units ref) {
	binary.LittleEndian.PutUint32(s.bytes(r), uint32(s.free[units]))
	s.free[units] = r
}

// alloc returns a block of a size, a freed one if there is any.
func (s *blockStore) alloc(units ref) ref {
	if r := s.free[units]; r != 0 {
		s.free[units] = ref(binary.LittleEndian.Uint32(s.bytes(r)))
		return r
	}
	if s.unused == 0 {
		s.unused = 1 // Address 0 means none.
	}
	if rest := -s.unused % chunkUnits; rest < units {
		s.freeRest(rest)
	}
	r := s.unused
	if r == 0 || r+units < r {
		panic("BUG: more deadlines in one shard than 32-bit addresses reach")
	}
	s.reserve(r, units)
	s.unused += units
	return r
}

// freeRest adds the rest of the last chunk, too small for the wanted block, to the free lists.
func (s *blockStore) freeRest(rest ref) {
	if rest >= minUnits {
		s.reserve(s.unused, rest)
		s.addFree(s.unused, rest)
	}
	s.unused += rest
}

// reserve makes sure that the units from r on, all in one chunk, have memory.
func (s *blockStore) reserve(r, units ref) {
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
