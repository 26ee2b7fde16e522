package structures

import (
	"math/bits"
)

// add is a + b unless that overflows.
func add(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}

// subtract returns a-b, and false if that is no int64.
func subtract(a, b int64) (int64, bool) {
	difference := a - b
	return difference, (difference < a) == (b > 0)
}

// window cuts the inclusive positions start to stop, negative ones counting
// from the end, to what a sequence of length n has: count positions from first.
func window(start, stop int64, n int) (first, count int) {
	length := int64(n)
	if start < 0 {
		start = max(start+length, 0)
	}
	if stop < 0 {
		stop += length
	}
	stop = min(stop, length-1)
	if start > stop {
		return 0, 0
	}
	return int(start), int(stop - start + 1)
}

// below maps 64 random bits to an integer from 0 to n-1, multiplying instead of
// dividing. The bias is n in 2^64.
func below(random uint64, n int) int {
	high, _ := bits.Mul64(random, uint64(n))
	return int(high)
}
