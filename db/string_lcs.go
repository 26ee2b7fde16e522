package db

import "github.com/stavedb/stave/structures"

// LCS is a longest common subsequence of two strings.
//
//	Text []byte
//	Matches []LCSMatch
type LCS = structures.LCS

// LCSMatch is a run of equal bytes that a common subsequence is made of.
//
//	A, B, Length int
type LCSMatch = structures.LCSMatch

// LongestCommonSubsequence compares the strings at two keys: the longest sequence of bytes that both have in the same
// order. A key that does not exist is an empty string. It fails with structures.ErrLCSType if a key holds no string,
// and with structures.ErrLCSTooLong if the product of the lengths is above 2^27. Time is O(length * length), memory a
// bit for each comparison; writers of the two keys wait for it.
func (k Keyspace) LongestCommonSubsequence(a, b string) (LCS, error) {
	return callKeys(k.handle, reading, []string{a, b}, func(t *Tx) (LCS, error) { return structures.LongestCommonSubsequence(t.txn(), a, b) })
}
