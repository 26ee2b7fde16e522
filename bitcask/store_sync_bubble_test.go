package bitcask_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestSyncWhileTimeStandsStill has writers wait for syncs in a bubble, where
// no time passes as long as anyone runs: nothing may wait for time to pass by
// looking at it.
func TestSyncWhileTimeStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := bitcask.Open("d", seam.With(&bitcask.Options{Sync: bitcask.SyncAlways, SegmentSize: 1 << 10}, seam.Options{FS: vfs.NewMem()}))
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for w := range 8 {
			wait.Go(func() {
				for i := range 100 {
					put(t, s, fmt.Sprint(w, " ", i), "value")
					if err := s.Sync(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wait.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
