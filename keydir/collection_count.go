package keydir

import "math/bits"

// fenwick is a Fenwick tree over len(f) numbers: entry i holds the sum of the numbers from
// i&(i+1) to i. Changing a number and summing the first ones take O(log n).
// (Fenwick: A new data structure for cumulative frequency tables, 1994.)
type fenwick []int

// build turns a slice of numbers into their tree.
func (f fenwick) build() {
	for i := range f {
		if up := i | (i + 1); up < len(f) {
			f[up] += f[i]
		}
	}
}

// add adds delta to the i-th number.
func (f fenwick) add(i, delta int) {
	for ; i < len(f); i |= i + 1 {
		f[i] += delta
	}
}

// sum returns the sum of the first i numbers.
func (f fenwick) sum(i int) int {
	s := 0
	for ; i > 0; i &= i - 1 {
		s += f[i-1]
	}
	return s
}

// find returns the greatest i such that the first i numbers, none of which is negative,
// add up to at most want, and the rest of want.
func (f fenwick) find(want int) (i, rest int) {
	for step := 1 << bits.Len(uint(len(f))) >> 1; step > 0; step >>= 1 {
		if next := i + step; next <= len(f) && f[next-1] <= want {
			want -= f[next-1]
			i = next
		}
	}
	return i, want
}
