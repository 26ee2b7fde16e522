package keydir

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Seed is the secret key of the hash. A store keeps one seed for its lifetime, so
// hashes, and with them scan cursors, mean the same in every process that opens it.
type Seed [2]uint64

// Stripes is the number of stripes of the hash space. A stripe is the unit of
// locking: everything about a key, in all namespaces, is in the stripe of its hash.
const Stripes = 256

// StripeOf returns the stripe of a hash: its top eight bits.
func StripeOf(hash uint64) int { return int(hash >> 56) }

// Hash returns SipHash-1-3 of name under the seed. It is keyed, so a client that chooses
// names cannot aim at one stripe or one page; with one and three rounds it costs little more
// than an unkeyed hash.
// (Aumasson, Bernstein: SipHash, a fast short-input PRF, 2012.)
func (s Seed) Hash(name string) uint64 {
	v0 := s[0] ^ 0x736f6d6570736575
	v1 := s[1] ^ 0x646f72616e646f6d
	v2 := s[0] ^ 0x6c7967656e657261
	v3 := s[1] ^ 0x7465646279746573

	b := unsafe.Slice(unsafe.StringData(name), len(name))
	for len(b) >= 8 {
		m := binary.LittleEndian.Uint64(b)
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
		b = b[8:]
	}
	m := uint64(len(name))<<56 | lastBytes(b)
	v3 ^= m
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= m

	v2 ^= 0xff
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

// lastBytes returns the last bytes, up to seven, as a little-endian number.
func lastBytes(b []byte) uint64 {
	switch {
	case len(b) >= 4: // two overlapping loads
		low := uint64(binary.LittleEndian.Uint32(b))
		high := uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
		return low | high<<(8*(len(b)-4))
	case len(b) > 0: // first, middle and last byte: of one, two or three
		return uint64(b[0]) | uint64(b[len(b)>>1])<<(8*(len(b)>>1)) | uint64(b[len(b)-1])<<(8*(len(b)-1))
	}
	return 0
}

// sipRound is one round of SipHash.
func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}

// hasher hashes the elements of collections. The mask is all ones; tests narrow it to make
// elements collide.
type hasher struct {
	seed Seed
	mask uint64
}

func (h *hasher) sum(elem string) uint64 { return h.seed.Hash(elem) & h.mask }

func (h *hasher) sumBytes(elem []byte) uint64 {
	return h.sum(unsafe.String(unsafe.SliceData(elem), len(elem)))
}
