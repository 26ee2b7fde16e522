package arena_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stavedb/stave/server/internal/arena"
)

// TestArena: what was added is there, in order, whatever its size, and whatever is appended to a copy.
func TestArena(t *testing.T) {
	var list arena.Blocks[[][]byte]
	var args arena.Args
	of := func(i int) [][]byte {
		words := [][]byte{}
		for j := range i % 7 {
			words = append(words, bytes.Repeat([]byte{byte(i), byte(j)}, i*j%3001))
		}
		if i%500 == 0 {
			words = append(words, make([][]byte, 3000)...)
		}
		return words
	}
	const n = 3000
	for i := range n {
		given := of(i)
		kept := args.Copy(given)
		list.Add(kept)
		for j := range kept {
			_ = append(kept[j], "overwrites nothing"...)
			for k := range given[j] {
				given[j][k] = 'x'
			}
		}
		_ = append(kept, []byte("nor this"))
	}
	i := 0
	for kept := range list.All() {
		if want := of(i); fmt.Sprintf("%x", *kept) != fmt.Sprintf("%x", want) {
			t.Fatalf("%d: got %.100x, want %.100x", i, *kept, want)
		}
		i++
	}
	if i != n || list.Len() != n {
		t.Errorf("%d of %d, Len %d", i, n, list.Len())
	}
	for range list.All() {
		break
	}
}
