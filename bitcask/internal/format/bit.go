package format

// CorrectLimit is the length in bytes of the longest record that is corrected. Up to there the polynomial never
// mistakes two flipped bits for one (its Hamming distance is 4 up to 91,607 bits), and more of them once in so many
// times as four billion exceeds the number of bits.
const CorrectLimit = 91607 / 8

// AnyBit flips each bit of b in turn until that makes it right.
func AnyBit(b []byte, right func() bool) bool {
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		if right() {
			return true
		}
		b[i/8] ^= 1 << (i % 8)
	}
	return false
}
