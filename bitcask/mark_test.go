package bitcask_test

import (
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestReachedAlongsideTheIdleMark: the owner of a file that describes the log asks about its mark right after Open,
// when the background may just note in the manifest that the store is idle. The race detector is the judge.
func TestReachedAlongsideTheIdleMark(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "d", seam.With(&bitcask.Options{SyncEvery: neverIdle}, seam.Options{FS: mem}))
	put(t, s, "k", "v")
	mark, err := s.Mark()
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		killed := open(t, "d", seam.With(&bitcask.Options{SyncEvery: time.Millisecond}, seam.Options{FS: mem.Clone()}))
		for end := time.Now().Add(5 * time.Millisecond); time.Now().Before(end); {
			if !killed.Reached(mark) {
				t.Fatal("the log has not been where it was")
			}
		}
		if err := killed.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
