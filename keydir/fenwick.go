package keydir

import "math/bits"

// A Fenwick tree over n numbers is a slice of n partial sums: entry i holds the sum of
// the numbers from i&(i+1) to i. Changing a number and summing the first ones
// take O(log n). (Fenwick: A new data structure for cumulative frequency tables, 1994.)

// build turns a slice of numbers into their tree.
func build(tree []int) {
	for i := range tree {
		if up := i | (i + 1); up < len(tree) {
			tree[up] += tree[i]
		}
	}
}

// add adds delta to the i-th number.
func add(tree []int, i, delta int) {
	for ; i < len(tree); i |= i + 1 {
		tree[i] += delta
	}
}

// sum returns the sum of the first i numbers.
func sum(tree []int, i int) int {
	s := 0
	for ; i > 0; i &= i - 1 {
		s += tree[i-1]
	}
	return s
}

// find returns the greatest i such that the first i numbers, none of which is
// negative, add up to at most want, and what is left of want.
func find(tree []int, want int) (i, rest int) {
	for step := 1 << bits.Len(uint(len(tree))) >> 1; step > 0; step >>= 1 {
		if next := i + step; next <= len(tree) && tree[next-1] <= want {
			want -= tree[next-1]
			i = next
		}
	}
	return i, want
}
