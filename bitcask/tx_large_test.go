package bitcask_test

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/internal/commitlog"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestLargeCommitAlongsideOthers: while a large commit is being written, TryBegin begins no transaction that would wait for
// it, and readers use its stripes.
func TestLargeCommitAlongsideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := vfstest.NewFault(vfs.NewMem())
		s := open(t, "d", seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: fault, NoMapping: true}))
		keys := inOneStripe(s, 2)
		large, other := keys[0], keys[1]
		put(t, s, other, "value")
		begins := func(write bool, want bool) {
			t.Helper()
			tx, ok, err := s.TryBegin(write, other)
			if ok != want || err != nil {
				t.Errorf("to write: %t: began: %t, %v", write, ok, err)
			}
			if ok {
				tx.Recycle()
			}
		}
		begins(true, true)
		proceed := make(chan struct{})
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Do: func(vfstest.Event) { <-proceed }})
		var writer sync.WaitGroup
		writer.Go(func() {
			if err := s.Put(large, bytes.Repeat([]byte("x"), commitlog.LargeFrame)); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Millisecond) // until it is being written
		begins(true, false)
		begins(false, true)
		want(t, s, other, "value")
		close(proceed)
		writer.Wait()
		begins(true, true)
	})
}
