package manifest

import "github.com/klauspost/crc32"

// Checksums of any range of a manifest, each in the same short time. Whether there is an edit at a place depends on as
// many bytes as its length says. Checking every place of a file, and every length that one flipped bit makes of
// another, takes a time that grows with the square of the file: hours for a few malicious MiB.
//
// A checksum without its final inversion is linear: after the bytes from i to j it is its former value, advanced by j-i
// zero bytes, xor the checksum of these bytes from zero. So the state before every few bytes of the file gives that of
// any range.

// stride is how many bytes are between two states that are kept.
const stride = 32

// rangeSums gives the checksums of the ranges of b, which must not change.
type rangeSums struct {
	b      []byte
	states []uint32 // of b[:i*stride], from 0
	shifts [7][16]shift
}

// shift moves a state on by some zero bytes: one table for each byte of the state.
type shift [4][256]uint32

func (s *shift) apply(v uint32) uint32 {
	return s[0][v&0xff] ^ s[1][v>>8&0xff] ^ s[2][v>>16&0xff] ^ s[3][v>>24]
}

// then fills s in as the shift by what a and b shift by.
func (s *shift) then(a, b *shift) {
	for i := range s {
		for v := range s[i] {
			s[i][v] = b.apply(a[i][v])
		}
	}
}

func newRangeSums(b []byte) *rangeSums {
	r := &rangeSums{b: b, states: make([]uint32, 0, len(b)/stride+1)}
	state := uint32(0)
	for at := 0; ; at += stride {
		r.states = append(r.states, state)
		if at+stride > len(b) {
			break
		}
		state = extend(state, b[at:at+stride])
	}
	one := &r.shifts[0][1]
	for v := range 256 {
		one[0][v] = crc32.IEEETable[v]
		for i := 1; i < len(one); i++ {
			one[i][v] = uint32(v) << (8 * (i - 1))
		}
	}
	for digit := range r.shifts {
		by := &r.shifts[digit]
		if digit > 0 {
			last := &r.shifts[digit-1]
			by[1].then(&last[15], &last[1])
		}
		for n := 2; n < len(by); n++ {
			by[n].then(&by[n-1], &by[1])
		}
	}
	return r
}

// extend is the state after some bytes.
func extend(state uint32, b []byte) uint32 { return ^crc32.Update(^state, crc32.IEEETable, b) }

// moved is a state after n zero bytes.
func (r *rangeSums) moved(state uint32, n int) uint32 {
	for digit := 0; n > 0; digit, n = digit+1, n>>4 {
		if n&15 != 0 {
			state = r.shifts[digit][n&15].apply(state)
		}
	}
	return state
}

// before is the state after b[:at], from 0.
func (r *rangeSums) before(at int) uint32 {
	return extend(r.states[at/stride], r.b[at/stride*stride:at])
}

// sum continues a checksum with b[from:to].
func (r *rangeSums) sum(sum uint32, from, to int) uint32 {
	return ^(r.moved(^sum^r.before(from), to-from) ^ r.before(to))
}

// flipped returns which bit of b[from:to] has to be flipped for the checksum of a range that ends at end to change by
// diff.
func (r *rangeSums) flipped(diff uint32, from, to, end int) (bit int, ok bool) {
	if from >= to {
		return 0, false
	}
	effect := r.moved(crc32.IEEE, end-to) // of the last bit before to
	for bit = 8*to - 1; bit >= 8*from; bit-- {
		if effect == diff {
			return bit, true
		}
		effect = effect>>1 ^ crc32.IEEE*(effect&1)
	}
	return 0, false
}
