package db_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestFeedTakesNothingBack: whatever a feed has shown at any moment is in the store after a power cut at that moment,
// in all sync modes, and the commits before it as well.
func TestFeedTakesNothingBack(t *testing.T) {
	r := chance.Rand(t)
	for _, mode := range crashModes {
		t.Run(mode.String(), func(t *testing.T) {
			rec := vfstest.NewRecorder(vfs.NewMem())
			open := func() *db.Store {
				o := seam.With(&db.Options{SegmentSize: 4 << 10, NoMerge: true, ExpireEvery: -1, Sync: mode.sync, SyncEvery: time.Hour}, seam.Options{FS: rec, Copies: mode.copies, CopyStep: 2 << 10})
				return ok[*db.Store](t)(db.Open("d", o))
			}
			w := open()
			work := &followWorkload{s: w, r: r}
			for i := range 60 {
				must(t, work.commit())
				switch {
				case i%20 == 10:
					must(t, work.s.Sync())
				case i%30 == 25:
					must(t, work.s.Close())
					work.s = open()
				}
			}
			must(t, work.s.Close())
			looks := 60
			if testing.Short() {
				looks = 15
			}
			events, shownAtAll := rec.Events(), 0
			d := crash.NewDisk("d", crash.State{})
			for i, e := range events {
				d.Apply(i, e)
				if r.IntN(len(events)) >= looks {
					continue
				}
				now := d.Cut(crash.Ordered, crash.All(d.Units()))
				shown, err := inState(t, now)
				if err != nil && !errors.Is(err, bitcask.ErrManifest) && !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("after event %d, %v: %v", i, e, err)
				}
				shownAtAll += len(shown)
				cuts := 0
				for keep := range crash.Choices(d.Units(), d.Units(), 5, r) {
					if cuts++; cuts > 6 {
						break
					}
					mem := ok[*vfs.Mem](t)(d.Cut(crash.Weak, keep).Mem("d"))
					s := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1}, seam.Options{FS: mem})))
					must(t, s.Close())
					after, err := feedOf(t, mem)
					must(t, err)
					if len(after) < len(shown) || !slices.Equal(after[:len(shown)], shown) {
						t.Fatalf("after event %d, %v, keeping %v: %d commits, of which the first ones are not the %d that were shown", i, e, keep, len(after), len(shown))
					}
				}
			}
			if shownAtAll == 0 {
				t.Error("nothing was ever shown")
			}
		})
	}
}

func inState(t *testing.T, state crash.State) ([]string, error) {
	t.Helper()
	return feedOf(t, ok[*vfs.Mem](t)(state.Mem("d")))
}

// feedOf is all that a feed shows of a store at rest.
func feedOf(t *testing.T, files vfs.FS) (list []string, err error) {
	t.Helper()
	f, err := bitcask.OpenFeed(t.Context(), "d", bitcask.FeedOptions{Store: seam.With(&bitcask.Options{}, seam.Options{FS: files})})
	if err != nil {
		return nil, err
	}
	defer func() { must(t, f.Close()) }()
	err = drain(t.Context(), f, func(c *feed.Commit) error {
		list = append(list, commitText(c))
		return nil
	})
	return list, err
}
