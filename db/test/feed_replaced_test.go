package db_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
)

// replaceWays are the ways in which an older copy of a store gets into its place.
var replaceWays = map[string]func(t *testing.T, dir, older string){
	"directory swapped": func(t *testing.T, dir, older string) {
		must(t, os.Rename(dir, dir+".away"))
		must(t, os.CopyFS(dir, os.DirFS(older)))
	},
	"files written over": func(t *testing.T, dir, older string) { eachFileOf(t, older, dir, os.WriteFile) },
	"files exchanged": func(t *testing.T, dir, older string) {
		eachFileOf(t, older, dir, func(name string, b []byte, mode os.FileMode) error {
			if err := os.WriteFile(name+".tmp", b, mode); err != nil {
				return err
			}
			return os.Rename(name+".tmp", name)
		})
	},
}

// eachFileOf writes the files of one directory to another, which has those alone then.
func eachFileOf(t *testing.T, from, to string, write func(name string, b []byte, mode os.FileMode) error) {
	t.Helper()
	for _, e := range ok[[]os.DirEntry](t)(os.ReadDir(from)) {
		must(t, write(filepath.Join(to, e.Name()), ok[[]byte](t)(os.ReadFile(filepath.Join(from, e.Name()))), 0o600))
	}
	for _, e := range ok[[]os.DirEntry](t)(os.ReadDir(to)) {
		if _, err := os.Stat(filepath.Join(from, e.Name())); err != nil {
			must(t, os.Remove(filepath.Join(to, e.Name())))
		}
	}
}

// olderCopies are the moments at which the copy is made, and what the writer does after it.
var olderCopies = map[string]func(t *testing.T, s *db.Store, copied func()){
	"in a session": func(t *testing.T, s *db.Store, copied func()) { copied(); fillCommits(t, s, 30) },
	"before a rotation": func(t *testing.T, s *db.Store, copied func()) {
		copied()
		for range 4 {
			fillCommits(t, s, 5)
			must(t, s.String("large").Put(make([]byte, 10<<10)))
		}
	},
	"and a pause": func(t *testing.T, s *db.Store, copied func()) { copied(); fillCommits(t, s, 30); must(t, s.Sync()) },
}

func fillCommits(t *testing.T, s *db.Store, n int) {
	t.Helper()
	for i := range n {
		must(t, s.String(fmt.Sprint("k", i%7)).Put(fmt.Appendf(nil, "%d of %d", i, n)))
	}
}

// TestFeedOlderCopy: a feed in whose directory, or place, an older copy of the store is put ends with an error that
// says so, whether the copy is at rest, or another writer has given the numbers again before the feed has looked.
func TestFeedOlderCopy(t *testing.T) {
	for way, replace := range replaceWays {
		for when, write := range olderCopies {
			for _, again := range []int{-1, 0, 3, 200} {
				t.Run(fmt.Sprintf("%s, %s, %d commits again", way, when, again), func(t *testing.T) {
					t.Parallel()
					dir, older := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "older")
					o := &db.Options{SegmentSize: 16 << 10, NoMerge: true, ExpireEvery: -1}
					w := ok[*db.Store](t)(db.Open(dir, o))
					fillCommits(t, w, 20)
					f := openFeed(t, dir, bitcask.FeedOptions{})
					write(t, w, func() { must(t, os.CopyFS(older, os.DirFS(dir))) })
					must(t, w.Close())
					var last uint64
					must(t, drain(t.Context(), f, func(c *feed.Commit) error { last = c.Last; return nil }))
					equal(t, "the last commit", last, w.Position())

					replace(t, dir, older)
					if again >= 0 {
						w = ok[*db.Store](t)(db.Open(dir, o))
						fillCommits(t, w, again)
						must(t, w.Close())
					}
					wantReplaced(t, f)
				})
			}
		}
	}
}

// wantReplaced reads on until the feed says that another log is there. It must not show a commit of that.
func wantReplaced(t *testing.T, f *feed.Feed) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		err := drain(t.Context(), f, func(c *feed.Commit) error { return fmt.Errorf("the commit %d-%d was shown", c.First, c.Last) })
		_, future := errors.AsType[*feed.FutureError](err)
		switch {
		case future || errors.Is(err, bitcask.ErrReplaced):
			return
		case err != nil:
			t.Fatal(err)
		case time.Now().After(deadline):
			t.Fatal("the feed is quiet")
		}
	}
}

// TestFollowOlderCopy: a follower in whose directory an older copy of the store is put shows that, as of a log that has
// gone back; one in whose place another directory is says so.
func TestFollowOlderCopy(t *testing.T) {
	for way, replace := range replaceWays {
		for when, write := range olderCopies {
			t.Run(way+", "+when, func(t *testing.T) {
				dir, older := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "older")
				o := &db.Options{SegmentSize: 16 << 10, NoMerge: true, ExpireEvery: -1}
				w := ok[*db.Store](t)(db.Open(dir, o))
				fillCommits(t, w, 30)
				f := followed(t, dir, db.Options{}, seam.Options{})
				write(t, w, func() { must(t, os.CopyFS(older, os.DirFS(dir))) })
				must(t, w.Close())
				caughtUp(t, f, w)

				replace(t, dir, older)
				if way == "directory swapped" {
					for deadline := time.Now().Add(time.Minute); !errors.Is(f.FollowState().Err, bitcask.ErrReplaced); time.Sleep(time.Millisecond) {
						if time.Now().After(deadline) {
							t.Fatalf("the follower is quiet: %+v", f.FollowState())
						}
					}
					return
				}
				w = ok[*db.Store](t)(db.Open(dir, o))
				must(t, w.String("again").Put([]byte("1")))
				caughtUp(t, f, w)
				equal(t, "what the follower shows", storeText(t, f), storeText(t, w))
				must(t, w.Close())
			})
		}
	}
}
