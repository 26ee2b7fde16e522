package bitcask_test

import (
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestLoadingWithoutAListener: Loading may return no function for the replayed changes.
func TestLoadingWithoutAListener(t *testing.T) {
	for _, known := range []bool{false, true} {
		mem := vfs.NewMem()
		nobody := func([16]byte, uint64) (func(bitcask.DeadlineEvent), bool) { return nil, known }
		for range 2 { // the second time from an INDEX
			s := open(t, "d", seam.With(&bitcask.Options{Loading: nobody}, seam.Options{FS: mem}))
			tx, err := s.Begin(true, "k")
			if err != nil {
				t.Fatal(err)
			}
			if err := tx.PutString(0, "k", []byte("v")); err != nil {
				t.Fatal(err)
			}
			if err := tx.SetDeadline(0, "k", 4e12); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			tx.End()
			killed := open(t, "d", seam.With(&bitcask.Options{Loading: nobody}, seam.Options{FS: mem.Clone()}))
			want(t, killed, "k", "v")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
