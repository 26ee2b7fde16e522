package feed_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/feed"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// logOf is a store in memory with so many commits of one record each, in several segments.
func logOf(t *testing.T, commits int) (*bitcask.Store, *bitcask.Options) {
	t.Helper()
	o := seam.With(&bitcask.Options{Sync: bitcask.SyncAlways, SegmentSize: 1 << 10}, seam.Options{FS: vfs.NewMem()})
	s, err := bitcask.Open("d", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for i := range commits {
		if err := s.Put(fmt.Sprint("key", i%7), []byte(strings.Repeat("v", 40)+fmt.Sprint(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	return s, o
}

// open begins a feed; first is the sequence number of its first commit.
func open(t *testing.T, o bitcask.FeedOptions) (first uint64, err error) {
	t.Helper()
	f, err := bitcask.OpenFeed(t.Context(), "d", o)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	c, err := f.Next(t.Context())
	if err != nil {
		return 0, err
	}
	if want := fmt.Sprint(c.First); !strings.HasSuffix(string(c.Changes[0].Value), "v"+want) {
		t.Errorf("sequence %s has the value %.60q", want, c.Changes[0].Value)
	}
	return c.First, nil
}

// TestFeedBegins: a feed begins with the commit after the one that was asked for, wherever segments end, or so many
// before the end.
func TestFeedBegins(t *testing.T) {
	s, o := logOf(t, 60)
	if err := s.Close(); err != nil { // the last commit of a writer that goes on is not known to be on the disk
		t.Fatal(err)
	}
	for after := range uint64(60) {
		if first, err := open(t, bitcask.FeedOptions{After: after, Store: o}); first != after+1 || err != nil {
			t.Errorf("after %d: %d, %v", after, first, err)
		}
	}
	for newest, want := range map[int]uint64{1: 60, 25: 36, 60: 1, 1000: 1} {
		if first, err := open(t, bitcask.FeedOptions{Newest: newest, Store: o}); first != want || err != nil {
			t.Errorf("the newest %d: %d, %v", newest, first, err)
		}
	}
}

// TestFeedAfterMerge: what a merge has written has no order of commits, so a feed cannot begin before it, and says where
// it can; from there on it has every commit.
func TestFeedAfterMerge(t *testing.T) {
	s, o := logOf(t, 60)
	var oldest []uint32
	var through uint64
	for _, sg := range s.Segments()[:3] {
		oldest, through = append(oldest, sg.ID), sg.MaxSeq
	}
	if _, err := s.Rewrite(t.Context(), oldest, bitcask.RewriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, after := range []uint64{0, through - 1} {
		_, err := open(t, bitcask.FeedOptions{After: after, Store: o})
		if missing, is := errors.AsType[*feed.MissingCommitsError](err); !is || missing.After != after || missing.From != through {
			t.Errorf("after %d: %v, want those after %d", after, err, through)
		}
	}
	if first, err := open(t, bitcask.FeedOptions{After: through, Store: o}); first != through+1 || err != nil {
		t.Errorf("after %d: %d, %v", through, first, err)
	}
}

// TestFeedOfAnotherLog: a feed that is to begin after the end of the log is of another store.
func TestFeedOfAnotherLog(t *testing.T) {
	s, o := logOf(t, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, bitcask.FeedOptions{After: 6, Store: o})
	if future, is := errors.AsType[*feed.FutureError](err); !is || future.End != 5 {
		t.Error(err)
	}
}

// TestFeedGapBeforeTail: commits whose segments were merged away to nothing are missed, although only the unsealed segment
// says that there were any.
func TestFeedGapBeforeTail(t *testing.T) {
	s, o := logOf(t, 60)
	f, err := bitcask.OpenFeed(t.Context(), "d", bitcask.FeedOptions{After: 1, Store: o})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for last := uint64(0); last < 50; {
		c, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last = c.Last
	}
	put := func() { // each key again, so that nothing before it counts
		for i := range 7 {
			if err := s.Put(fmt.Sprint("key", i), []byte(strings.Repeat("v", 40))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 20 {
		put()
	}
	for n := len(s.Segments()); len(s.Segments()) == n; {
		if err := s.Put("key0", []byte(strings.Repeat("v", 40))); err != nil {
			t.Fatal(err)
		}
	}
	put() // in the segment that is written now
	var ids []uint32
	for _, info := range s.Segments() {
		if info.Sealed {
			ids = append(ids, info.ID)
		}
	}
	if _, err := s.Rewrite(t.Context(), ids, bitcask.RewriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, info := range s.Segments() {
		if info.Sealed {
			t.Fatalf("not merged to nothing: %+v", info)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, err := f.Next(t.Context())
		if missing := (*feed.MissingCommitsError)(nil); errors.As(err, &missing) {
			return
		}
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the feed says nothing of the commits that are missing")
		}
		time.Sleep(time.Millisecond)
	}
}
