package rewrite_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// openStore opens the store "d" with segments of a few records.
func openStore(t *testing.T, fs vfs.FS) *bitcask.Store {
	t.Helper()
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 1 << 10}, seam.Options{FS: fs, NoIndex: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// fill puts records until another segment is begun, and returns the ids of those before it. They are sealed when the
// store has been opened again, if not sooner.
func fill(t *testing.T, s *bitcask.Store, key string) (full []uint32) {
	t.Helper()
	for before := len(s.Segments()); len(s.Segments()) == before; {
		if err := s.Put(key, []byte(strings.Repeat("v", 100))); err != nil {
			t.Fatal(err)
		}
	}
	for _, sg := range s.Segments() {
		full = append(full, sg.ID)
	}
	return full[:len(full)-1]
}

// again closes the store and opens it.
func again(t *testing.T, s *bitcask.Store, fs vfs.FS) *bitcask.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return openStore(t, fs)
}

// TestTombstonesStay: a tombstone is dropped only when no segment that stays can have a record that it hides, or the key
// would come back with the next replay of the log.
func TestTombstonesStay(t *testing.T) {
	for _, both := range []bool{false, true} {
		fs := vfs.NewMem()
		s := openStore(t, fs)
		if err := s.Put("gone", []byte("value")); err != nil {
			t.Fatal(err)
		}
		first := fill(t, s, "a")
		if _, err := s.Delete("gone"); err != nil {
			t.Fatal(err)
		}
		ids := fill(t, s, "b")
		if !both {
			ids = slices.DeleteFunc(ids, func(id uint32) bool { return slices.Contains(first, id) })
		}
		s = again(t, s, fs)
		r, err := s.Rewrite(t.Context(), ids, bitcask.RewriteOptions{})
		if err != nil || len(r.In) != len(ids) || r.Copied != map[bool]uint64{false: 2, true: 1}[both] { // the newest record of a, and the tombstone
			t.Fatalf("both %v: %+v, %v", both, r, err)
		}
		s = again(t, s, fs)
		if _, err := s.Get("gone"); !errors.Is(err, bitcask.ErrNotFound) {
			t.Errorf("both %v: a deleted key after a rewrite and a replay: %v", both, err)
		}
		for _, key := range []string{"a", "b"} {
			if v, err := s.Get(key); err != nil || len(v) != 100 {
				t.Errorf("both %v: %s: %v", both, key, err)
			}
		}
	}
}

// TestGivenUp: a rewrite whose throttle fails leaves the store as it was, with all its segments, and no file of its own.
func TestGivenUp(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, fs)
	for i := range 20 {
		if err := s.Put(fmt.Sprint("key", i), []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	ids := fill(t, s, "a")
	s = again(t, s, fs)
	files := func() string {
		names, err := fs.List("d")
		if err != nil {
			t.Fatal(err)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".data") })
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	before, stop := files(), errors.New("enough")
	if r, err := s.Rewrite(t.Context(), ids, bitcask.RewriteOptions{Throttle: func(int) error { return stop }}); !errors.Is(err, stop) || len(r.In) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if after := files(); after != before {
		t.Errorf("files %s, before %s", after, before)
	}
	for i := range 20 {
		if v, err := s.Get(fmt.Sprint("key", i)); string(v) != "value" {
			t.Errorf("key%d: %q, %v", i, v, err)
		}
	}
}
