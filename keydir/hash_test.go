package keydir_test

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/stavedb/stave/keydir"
)

// sip is SipHash-c-d written straight from the paper.
func sip(k0, k1 uint64, b []byte, c, d int) uint64 {
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	rounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[1] = bits.RotateLeft64(v[1], 13)
			v[1] ^= v[0]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[3]
			v[3] = bits.RotateLeft64(v[3], 16)
			v[3] ^= v[2]
			v[0] += v[3]
			v[3] = bits.RotateLeft64(v[3], 21)
			v[3] ^= v[0]
			v[2] += v[1]
			v[1] = bits.RotateLeft64(v[1], 17)
			v[1] ^= v[2]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	padded := append([]byte(nil), b...)
	for len(padded)%8 != 7 {
		padded = append(padded, 0)
	}
	padded = append(padded, byte(len(b)))
	for i := 0; i < len(padded); i += 8 {
		m := binary.LittleEndian.Uint64(padded[i:])
		v[3] ^= m
		rounds(c)
		v[0] ^= m
	}
	v[2] ^= 0xff
	rounds(d)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func count(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func TestSipReference(t *testing.T) {
	// The vectors of the SipHash paper and its reference implementation: SipHash-2-4, key and
	// messages 00 01 02 ...
	want := map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5}
	for n, hash := range want {
		if got := sip(0x0706050403020100, 0x0f0e0d0c0b0a0908, count(n), 2, 4); got != hash {
			t.Errorf("SipHash-2-4 of %d bytes = %x, want %x", n, got, hash)
		}
	}
}

func TestHashVectors(t *testing.T) {
	// SipHash-1-3 under a zero key, as CPython 3.11 computes it: hash(bytes(range(n))).
	want := map[int]uint64{
		1: 0x68a914128e01e473, 2: 0x010bac45c41e3669, 3: 0x4d4c9a4a8ef6e0ad, 4: 0x7cc43f98813e4dbd,
		5: 0x5abe2169dff36275, 6: 0xe3c25f87624f1cdb, 7: 0x2f098ab0c751325a, 8: 0xead411e67ebe2eea,
		9: 0x75927f9d95124362, 15: 0xf30eb725bb91c9ea, 16: 0x8972188433a5c5b7, 33: 0x7fb71d24dfa4c9f6,
		63: 0x385d3e39e5f37359,
	}
	for n, hash := range want {
		if got := (keydir.Seed{}).Hash(string(count(n))); got != hash {
			t.Errorf("hash of %d bytes = %x, want %x", n, got, hash)
		}
	}
}

func TestHashAgreesWithReference(t *testing.T) {
	seed := keydir.Seed{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	for n := range 300 {
		b := count(n)
		if got, want := seed.Hash(string(b)), sip(seed[0], seed[1], b, 1, 3); got != want {
			t.Fatalf("hash of %d bytes = %x, want %x", n, got, want)
		}
	}
}

func TestHashAllocatesNothing(t *testing.T) {
	name := string(count(100))
	if n := testing.AllocsPerRun(100, func() { keydir.Seed{1, 2}.Hash(name) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLoc(t *testing.T) {
	sizes := []uint32{0, 1, 7, 8, 9, 15, 16, 17, 18, 100, 127, 128, 129, 4095, 4096, 4097, 1 << 20, 1<<30 - 1, 1 << 30, 1<<32 - 1}
	for _, size := range sizes {
		for _, segment := range []uint32{0, 1, keydir.PendingSegment} {
			l := keydir.MakeLoc(segment, 1<<32-1-size, size)
			if l == 0 || l.Segment() != segment || l.Offset() != 1<<32-1-size {
				t.Errorf("location of segment %d size %d reads %d, %d", segment, size, l.Segment(), l.Offset())
			}
			if got := uint64(l.Size()); got < uint64(size) || size > 0 && got > uint64(size)+uint64(size)/8 {
				t.Errorf("size %d reads %d", size, got)
			}
			if l.Pending() != (segment == keydir.PendingSegment) {
				t.Errorf("segment %d: pending is %v", segment, l.Pending())
			}
		}
	}
	for size := uint32(1); size < 1<<17; size++ {
		got := keydir.MakeLoc(0, 0, size).Size()
		if got < size || got-size > size/8 {
			t.Fatalf("size %d reads %d", size, got)
		}
	}
}

func TestTypeNames(t *testing.T) {
	want := []string{"none", "string", "hash", "list", "set", "zset", "ttl"}
	for i, name := range want {
		if got := keydir.Type(i).String(); got != name {
			t.Errorf("type %d is %q, want %q", i, got, name)
		}
	}
}
