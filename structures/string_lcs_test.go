package structures_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/structures"
)

// The length is that of the textbook's table, and the runs spell the text on
// both sides.
func TestLongestCommonSubsequence(t *testing.T) {
	rng := chance.Rand(t)
	m := newMemory()
	for range 300 {
		a, b := randomText(rng), randomText(rng)
		set(t, m, "a", string(a))
		set(t, m, "b", string(b))
		lcs, err := structures.LongestCommonSubsequence(m, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		table := make([][]int, len(a)+1)
		table[0] = make([]int, len(b)+1)
		for i := range a {
			table[i+1] = make([]int, len(b)+1)
			for j := range b {
				table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
				if a[i] == b[j] {
					table[i+1][j+1] = table[i][j] + 1
				}
			}
		}
		equal(t, "length", len(lcs.Text), table[len(a)][len(b)])
		var left, right []byte
		for i := len(lcs.Matches) - 1; i >= 0; i-- {
			run := lcs.Matches[i]
			left = append(left, a[run.A:run.A+run.Length]...)
			right = append(right, b[run.B:run.B+run.Length]...)
		}
		if !bytes.Equal(left, lcs.Text) || !bytes.Equal(right, lcs.Text) {
			t.Fatalf("LCS of %q and %q is %q; its runs are %q and %q", a, b, lcs.Text, left, right)
		}
	}
	set(t, m, "long", string(make([]byte, 1<<20)))
	if _, err := structures.LongestCommonSubsequence(m, "long", "long"); err != structures.ErrLCSTooLong {
		t.Errorf("two long strings: %v", err)
	}
	if _, err := m.hash("h").Put("f", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := structures.LongestCommonSubsequence(m, "none", "h"); err != structures.ErrLCSType {
		t.Errorf("a hash: %v", err)
	}
}

func randomText(rng *rand.Rand) []byte {
	text := make([]byte, rng.IntN(40))
	for i := range text {
		text[i] = "abcd"[rng.IntN(4)]
	}
	return text
}
