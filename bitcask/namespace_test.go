package bitcask_test

import (
	"context"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

func flush(t *testing.T, s *bitcask.Store, namespace int) {
	t.Helper()
	inAll(t, s, func(tx *bitcask.Tx) error {
		_, _, err := tx.Flush(namespace)
		return err
	})
}

func swap(t *testing.T, s *bitcask.Store, a, b int) {
	t.Helper()
	inAll(t, s, func(tx *bitcask.Tx) error {
		_, err := tx.Swap(a, b)
		return err
	})
}

// mergeAll rewrites every segment.
func mergeAll(t *testing.T, s *bitcask.Store) {
	t.Helper()
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	var ids []uint32
	for _, sg := range s.Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	if _, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestSpaceOutlivesTheMapThatNamedIt has keys in the space that a flush made.
// The map of namespaces that first named it is superseded and merged away, so
// at Open the keys come before any map that knows their space.
func TestSpaceOutlivesTheMapThatNamedIt(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: fs}))
	put(t, s, "old", "x")
	flush(t, s, 0)
	put(t, s, "a", "1")
	swap(t, s, 1, 2)
	want(t, s, "a", "1")
	mergeAll(t, s)
	want(t, s, "a", "1")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: fs}))
		want(t, s, "a", "1")
		wantNone(t, s, "old")
		check(t, s)
	}
}

// TestDeadSpacesAreForgotten has records of spaces that no namespace names any
// more, and whose maps are gone: they count as dead.
func TestDeadSpacesAreForgotten(t *testing.T) {
	fs := vfs.NewMem()
	o := seam.With(&bitcask.Options{SegmentSize: 300}, seam.Options{FS: fs})
	s := open(t, "d", o)
	put(t, s, "a", "keeps its segment alive")
	put(t, s, "b", string(make([]byte, 300)))
	for range 3 {
		flush(t, s, 0)
		put(t, s, "c", string(make([]byte, 300)))
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, "d", o)
		wantNone(t, s, "a")
		wantNone(t, s, "b")
		if st := s.Stats(); st.Keys != 1 {
			t.Fatalf("%d keys, want 1", st.Keys)
		}
		check(t, s)
	}
}
