package db_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stavedb/stave/db"
)

// TestOrderIsKeptOnDisk: a store that was merged and closed, several times, has its small hashes and sets in the order
// in which it had them before.
func TestOrderIsKeptOnDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := db.Open(dir, nil)
	must(t, err)
	put := func(s *db.Store, n int) (fields []string) {
		h := s.Hash(strconv.Itoa(n))
		for i := range n {
			field := strconv.Itoa(i * 7919 % n) // n has no factor in common with 7919
			_, err := h.Put(field, []byte("x"))
			must(t, err)
			fields = append(fields, field)
		}
		_, err := h.Put(fields[1], []byte("y")) // keeps its place
		must(t, err)
		_, err = h.Delete(fields[0])
		must(t, err)
		_, err = h.Put(fields[0], []byte("z")) // goes to the end
		must(t, err)
		return append(fields[1:], fields[0])
	}
	sizes := []int{4, 30, 200, 500}
	want := map[int][]string{}
	for _, n := range sizes {
		want[n] = put(s, n)
	}
	for range 3 {
		_, err := s.Merge(t.Context(), db.MergeOptions{All: true})
		must(t, err)
		must(t, s.Close())
		s, err = db.Open(dir, nil)
		must(t, err)
		for _, n := range sizes {
			if have, err := s.Hash(strconv.Itoa(n)).Fields(); err != nil || !slices.Equal(have, want[n]) {
				t.Fatalf("%d fields: %v, want %v, %v", n, have, want[n], err)
			}
		}
	}
	must(t, s.Close())
}
