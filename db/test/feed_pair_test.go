package db_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestFeedPair: two feeds of one store, read at the same time beside a writer that rotates and merges, give the same
// commits.
func TestFeedPair(t *testing.T) {
	dir, r := t.TempDir(), chance.Rand(t)
	w := ok[*db.Store](t)(db.Open(dir, &db.Options{SegmentSize: 16 << 10, NoMerge: true, ExpireEvery: -1, SyncEvery: 5 * time.Millisecond}))
	work := &followWorkload{s: w, r: r}
	var lists [2][]string
	var ends [2]uint64
	read := func(i int, f *feed.Feed) error {
		return drain(t.Context(), f, func(c *feed.Commit) error {
			lists[i], ends[i] = append(lists[i], commitText(c)), c.Last
			return nil
		})
	}
	feeds := [2]*feed.Feed{openFeed(t, dir, bitcask.FeedOptions{}), openFeed(t, dir, bitcask.FeedOptions{})}
	stop, looked, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { // the other is read all the time
		for {
			if err := read(1, feeds[1]); err != nil {
				ended <- err
				return
			}
			select {
			case <-stop:
				ended <- nil
				return
			case looked <- struct{}{}:
			case <-time.After(time.Millisecond):
			}
		}
	}()
	bothLook := func() {
		must(t, read(0, feeds[0]))
		for range 2 { // the first look may have begun before
			select {
			case <-looked:
			case err := <-ended:
				t.Fatal(err)
			}
		}
	}
	for range 400 {
		must(t, work.commit())
		switch n := r.IntN(100); {
		case n < 3:
			bothLook() // and have open what there is
			must(t, mergeEverything(w))
		case n < 8:
			must(t, read(0, feeds[0]))
		}
	}
	must(t, w.Close())
	close(stop)
	must(t, <-ended)
	for i, f := range feeds {
		must(t, read(i, f))
		equal(t, "the last sequence number", ends[i], w.Position())
	}
	if !slices.Equal(lists[0], lists[1]) {
		t.Errorf("the feeds give %d and %d commits, which differ", len(lists[0]), len(lists[1]))
	}
}

// TestFeedFromReadOnlyMedia: a feed of a store that nobody can write to, and that was not closed, needs no lock and
// makes no file.
func TestFeedFromReadOnlyMedia(t *testing.T) {
	mem := vfs.NewMem()
	w := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{SegmentSize: 4 << 10, NoMerge: true, ExpireEvery: -1}, seam.Options{FS: mem})))
	work := &followWorkload{s: w, r: chance.Rand(t)}
	for range 60 {
		must(t, work.commit())
	}
	must(t, w.Close())
	want, err := feedOf(t, mem)
	must(t, err)
	fault := vfstest.NewFault(mem, vfstest.Rule{Sticky: true, Err: syscall.EROFS, Ops: []vfstest.Op{
		vfstest.OpCreate, vfstest.OpRemove, vfstest.OpRename, vfstest.OpLink, vfstest.OpMkdir, vfstest.OpRenameDir, vfstest.OpRemoveDir,
		vfstest.OpSyncDir, vfstest.OpLock, vfstest.OpWrite, vfstest.OpTruncate, vfstest.OpSync,
	}})
	got, err := feedOf(t, fault)
	must(t, err)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%d commits, want %d", len(got), len(want))
	}
	equal(t, "operations that were refused", fault.Failed(), 0)
}
