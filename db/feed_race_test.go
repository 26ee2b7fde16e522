package db_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestFeedOpensBesideMerges: whatever the writer does between two operations on files of a feed that is opened, rotate,
// merge or close, the feed opens and shows what there is, or says that merges have removed commits. That it came upon a
// file which has just gone is no error.
func TestFeedOpensBesideMerges(t *testing.T) {
	r, every := chance.Rand(t), 3
	if testing.Short() {
		every = 50
	}
	for name, o := range map[string]bitcask.FeedOptions{"the newest": {Newest: 30}, "from a number": {After: 1}} {
		t.Run(name, func(t *testing.T) {
			for step, reached := r.IntN(every), true; reached; step += every {
				mem := vfs.NewMem()
				open := func() *db.Store {
					return ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{SegmentSize: 2 << 10, NoMerge: true, ExpireEvery: -1}, seam.Options{FS: mem})))
				}
				w := open()
				work := &followWorkload{s: w, r: r}
				for range 25 {
					must(t, work.commit())
				}
				o.After = min(o.After, 1) * w.Position()
				for range 25 {
					must(t, work.commit())
				}
				reached = false
				fault := vfstest.NewFault(mem)
				fault.Inject(vfstest.Rule{Skip: step, Do: func(vfstest.Event) {
					reached = true
					must(t, mergeEverything(w))
					if step%2 == 0 {
						must(t, w.Close())
						w = open()
					}
					must(t, w.String("more").Put([]byte("1")))
				}})
				o.Store = seam.With(&bitcask.Options{}, seam.Options{FS: fault})
				f, err := bitcask.OpenFeed(t.Context(), "d", o)
				fault.Heal()
				if err == nil {
					must(t, w.Close())
					last := uint64(0)
					err = drain(t.Context(), f, func(c *feed.Commit) error {
						if last > 0 && c.First != last+1 {
							return fmt.Errorf("a commit from %d after %d", c.First, last)
						}
						last = c.Last
						return nil
					})
					must(t, f.Close())
				} else {
					must(t, w.Close())
				}
				if _, lost := errors.AsType[*feed.MissingCommitsError](err); err != nil && !lost {
					t.Errorf("before operation %d: %v", step, err)
				}
			}
		})
	}
}
