package db_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	for _, name := range []string{"the newest", "from a number"} { // one order, so that a seed draws the same
		o := map[string]bitcask.FeedOptions{"the newest": {Newest: 30}, "from a number": {After: 1}}[name]
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

// TestFeedOpensWhileItsEndIsTruncated: between any two operations of a feed that is opened, such as asking for the size of
// a file and reading it, the writer goes on in another segment or closes, and truncates the zeros that it had reserved.
// The feed opens, and knows which namespace each change is of.
func TestFeedOpensWhileItsEndIsTruncated(t *testing.T) {
	for i, name := range []string{"the newest", "from before a swap", "from after it", "the newest", "from before a swap", "from after it"} {
		closes := i < 3
		t.Run(fmt.Sprintf("%s, closes %v", name, closes), func(t *testing.T) {
			steps := 0
			for reached := true; reached; steps++ {
				mem := vfs.NewMem()
				w := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{SegmentSize: 2 << 10, NoMerge: true, ExpireEvery: -1}, seam.Options{FS: mem})))
				other := ok[*db.Store](t)(w.Use(1))
				must(t, w.String("key").Put(nil))
				o := bitcask.FeedOptions{After: w.Position()}
				must(t, w.Swap(0, 1))
				switch name {
				case "the newest":
					o = bitcask.FeedOptions{Newest: 2}
				case "from after it":
					o.After = w.Position()
				}
				must(t, w.String("a").Put(nil))
				must(t, other.String("b").Put(nil))
				reached = false
				fault := vfstest.NewFault(mem)
				fault.Inject(vfstest.Rule{Skip: steps, Do: func(vfstest.Event) {
					reached = true
					if closes {
						must(t, w.Close())
						return
					}
					for range 2 {
						must(t, w.String("long").Put(make([]byte, 3<<10)))
					}
				}})
				o.Store = seam.With(&bitcask.Options{}, seam.Options{FS: fault})
				f, err := bitcask.OpenFeed(t.Context(), "d", o)
				fault.Heal()
				if !reached || !closes {
					must(t, w.Close())
				}
				if err != nil {
					t.Errorf("before operation %d: %v", steps, err)
					continue
				}
				var seen []string
				must(t, drain(t.Context(), f, func(c *feed.Commit) error {
					for i := range c.Changes {
						if key := string(c.Changes[i].Key); key == "a" || key == "b" {
							seen = append(seen, fmt.Sprintf("%d %s", c.Changes[i].Namespace, key))
						}
					}
					return nil
				}))
				must(t, f.Close())
				wanted := []string{"0 a", "1 b"}
				if name == "the newest" && !closes { // two more have come, perhaps before it began
					wanted = wanted[max(0, len(wanted)-len(seen)):]
				}
				if !slices.Equal(seen, wanted) {
					t.Errorf("before operation %d: %q", steps, seen)
				}
			}
			t.Logf("%d operations", steps)
		})
	}
}

// TestFeedIsReadWhileItsEndIsTruncated: the same while commits are read. Those that a sync has followed are all returned
// before there is said to be no more.
func TestFeedIsReadWhileItsEndIsTruncated(t *testing.T) {
	for _, after := range []uint64{0, 1} {
		for steps, reached := 0, true; reached; steps++ {
			mem := vfs.NewMem()
			w := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1}, seam.Options{FS: mem})))
			must(t, w.String("a").Put(nil))
			must(t, w.String("b").Put(nil))
			must(t, w.Sync())
			must(t, w.String("c").Put(nil))
			fault := vfstest.NewFault(mem)
			f, err := bitcask.OpenFeed(t.Context(), "d", bitcask.FeedOptions{After: after, Store: seam.With(&bitcask.Options{}, seam.Options{FS: fault})})
			must(t, err)
			reached = false
			fault.Inject(vfstest.Rule{Skip: steps, Do: func(vfstest.Event) {
				reached = true
				must(t, w.Close())
			}})
			seen := ""
			err = drain(t.Context(), f, func(c *feed.Commit) error {
				for i := range c.Changes {
					seen += string(c.Changes[i].Key)
				}
				return nil
			})
			if !reached {
				must(t, w.Close())
			}
			must(t, f.Close())
			if wanted := "ab"[after:]; err != nil || !strings.HasPrefix(seen, wanted) {
				t.Errorf("after %d, before operation %d: %q, %v", after, steps, seen, err)
			}
		}
	}
}
