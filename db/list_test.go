package db_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestRemovalWritesLittle: a list that becomes short and is mostly holes is written again only where that is little.
func TestRemovalWritesLittle(t *testing.T) {
	s := ok[*db.Store](t)(db.Open("data", seam.With(&db.Options{}, seam.Options{FS: vfs.NewMem()})))
	defer s.Close()
	const all, value = 400, 2 << 10
	elem := func(i int) []byte { return fmt.Appendf(nil, "%0*d", value, i) }
	l := s.List("l")
	for i := range all {
		must(t, first(l.PushBack(elem(i))))
	}
	for i := 1; i < all-1; i++ {
		if i%4 == 0 { // those that stay are apart
			continue
		}
		before := s.Stats().Written
		equal(t, "removed", ok[int](t)(l.Remove(1, elem(i))), 1)
		if wrote := s.Stats().Written - before; wrote > 80<<10 {
			t.Fatalf("the removal of %d writes %d bytes", i, wrote)
		}
	}
	equal(t, "the last", string(ok[[]byte](t)(l.At(-1))), string(elem(all-1)))
}
