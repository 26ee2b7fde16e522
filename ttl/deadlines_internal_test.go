package ttl

import (
	"fmt"
	"math"
	"testing"
)

// TestCollidingHashes gives all keys one hash, which a real index sees a few times in a billion.
func TestCollidingHashes(t *testing.T) {
	const hash = 7
	var s shard
	has := map[string]bool{}
	check := func(step string) {
		t.Helper()
		for i := range 5 {
			key := fmt.Sprint(i)
			if ms, ok := s.get(hash, key); ok != has[key] || ok && ms != int64(i) {
				t.Fatalf("%s: key %s has %d, %v; want %v", step, key, ms, ok, has[key])
			}
		}
	}
	// Every order of removal is reached by removing, from full, first each one key and then a second.
	for first := range 5 {
		for second := range 5 {
			for i := range 5 {
				key := fmt.Sprint(i)
				if s.set(hash, key, int64(i)) == has[key] {
					t.Fatalf("set of key %s does not say whether it is new", key)
				}
				has[key] = true
			}
			for _, i := range []int{first, second} {
				key := fmt.Sprint(i)
				if s.clear(hash, key) != has[key] {
					t.Fatalf("clear of key %s does not say whether it was there", key)
				}
				delete(has, key)
				check(fmt.Sprintf("after removing %d, %d", first, second))
			}
		}
	}
	for i := range 5 {
		s.clear(hash, fmt.Sprint(i))
	}
	if len(s.byHash)+len(s.collided)+s.order.Len() != 0 || s.sum.hi|s.sum.lo != 0 || s.earliest.Load() != never {
		t.Errorf("an emptied shard holds %v, %v, %d items, sum %v, earliest %d", s.byHash, s.collided, s.order.Len(), s.sum, s.earliest.Load())
	}
}

// TestBlocksDoNotOverlap fills chunks to their ends with blocks of all sizes, frees some and fills again.
func TestBlocksDoNotOverlap(t *testing.T) {
	var s blockStore
	key := func(i int) string { return fmt.Sprintf("%0*d", 1+i*7%maxInline, i) }
	refs := map[ref]int{}
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			r := s.newBlock(key(i), int64(i))
			if _, taken := refs[r]; taken || r == 0 {
				t.Fatalf("block %d was handed out twice", r)
			}
			refs[r] = i
		}
	}
	fill(0, 5000)
	if len(s.chunks) < 3 {
		t.Fatalf("%d chunks do not prove much", len(s.chunks))
	}
	for r, i := range refs {
		if i%3 != 0 {
			s.freeBlock(r)
			delete(refs, r)
		}
	}
	used := s.unused
	fill(10_000*maxInline, 10_000*maxInline+1000) // Lengths as from 0 on: they fit into the freed blocks.
	if s.unused != used {
		t.Errorf("freed blocks were not used again: %d units more", s.unused-used)
	}
	for r, i := range refs {
		if !s.holds(r, key(i)) || s.key(r) != key(i) || s.deadline(r) != int64(i) {
			t.Fatalf("block %d holds %q, %d; want %q, %d", r, s.key(r), s.deadline(r), key(i), i)
		}
	}
}

// TestAddressesEnd makes sure that the last addresses are refused, not wrapped around.
func TestAddressesEnd(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an address wrapped around")
		}
	}()
	s := blockStore{chunks: make([][]byte, math.MaxUint32>>chunkShift+1), unused: math.MaxUint32 - 1}
	s.chunks[len(s.chunks)-1] = make([]byte, chunkUnits*unit)
	s.newBlock("longer than what is left", 1)
}
