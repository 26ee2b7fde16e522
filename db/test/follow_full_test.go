package db_test

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestFollowFullDisk: writes that fail half way, as on a full disk, and that their clients repeat, leave nothing in a
// follower that the writer does not have, and no read of it says that there is damage.
func TestFollowFullDisk(t *testing.T) {
	dir, r := t.TempDir(), chance.Rand(t)
	fault := vfstest.NewFault(vfs.OS())
	o := db.Options{SegmentSize: 64 << 10, NoMerge: true, ExpireEvery: -1, Sync: db.SyncNone}
	w := ok[*db.Store](t)(db.Open(dir, seam.With(&o, seam.Options{FS: fault, Copies: seam.CopiesOff})))
	defer func() { must(t, w.Close()) }()
	f := followed(t, dir, db.Options{}, seam.Options{})
	var writers, looks sync.WaitGroup
	stop := make(chan struct{})
	looks.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_, err := f.String(fmt.Sprint("k", i%40)).Get()
			if err != nil && !errors.Is(err, db.ErrNotFound) && !errors.Is(err, db.ErrRolledBack) {
				t.Errorf("a read of the follower: %v", err)
				return
			}
		}
	})
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	failures := 0
	for round := range rounds {
		for range 1 + r.IntN(3) {
			fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "*.data", Skip: r.IntN(20), Err: syscall.ENOSPC, Partial: r.IntN(400)})
		}
		// What a failed write has left stands for long enough to be read.
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpTruncate}, Path: "*.data", Sticky: true, Do: func(vfstest.Event) { time.Sleep(3 * time.Millisecond) }})
		var mu sync.Mutex // guards failures
		for n := range 8 {
			writers.Go(func() {
				for i := range 10 {
					value := fmt.Appendf(nil, "%06d %d %d", round, n, i)
					for try := 0; ; try++ {
						err := w.String(fmt.Sprint("k", (n*10+i)%40)).Put(value)
						if err == nil {
							break
						}
						if !errors.Is(err, db.ErrNoSpace) || try == 1000 {
							t.Errorf("a write: %v", err)
							return
						}
						mu.Lock()
						failures++
						mu.Unlock()
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		writers.Wait()
		fault.Heal()
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			_, want, _, err := contentsOf(w)
			must(t, err)
			_, got, _, err := contentsOf(f)
			if err == nil && got == want {
				break
			}
			if time.Since(begin) > time.Minute {
				t.Fatalf("round %d: the follower, at %d of %d, shows something else: %v %+v", round, f.Position(), w.Position(), err, f.FollowState())
			}
		}
	}
	close(stop)
	looks.Wait()
	t.Logf("%d failed writes, %d reloads", failures, f.FollowState().Reloads)
	if failures == 0 {
		t.Error("no write has failed")
	}
	must(t, f.FollowState().Err)
}
