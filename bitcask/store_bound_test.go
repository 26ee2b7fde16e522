package bitcask_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stavedb/stave/bitcask"
)

// TestBoundCounts: between two measurements commits and outputs of merges count, as a measurement finds them.
func TestBoundCounts(t *testing.T) {
	const bound = 64 << 20
	s := open(t, t.TempDir(), &bitcask.Options{SegmentSize: 1 << 16})
	defer s.Close() //nolint:errcheck // nothing depends on it
	s.SetBound(bound, false)
	if used, live, now := s.DirectoryBytes(); used != 0 || live != 0 || now != 0 {
		t.Fatalf("before the first measurement: %d, %d, %d", used, live, now)
	}
	measure := func() int64 {
		t.Helper()
		if err := s.MeasureBound(); err != nil {
			t.Fatal(err)
		}
		used, _, now := s.DirectoryBytes()
		if now != bound {
			t.Fatalf("the bound is %d", now)
		}
		return used
	}
	before := measure()
	garbage(t, s, 4000)
	counted, _, _ := s.DirectoryBytes()
	if now := s.Stats().Bytes; counted < before+now*9/10 || counted > before+now*11/10 {
		t.Errorf("%d bytes of commits count as %d", now, counted-before)
	}
	before = measure()
	r, err := s.Rewrite(context.Background(), sealed(s), bitcask.RewriteOptions{})
	if err != nil || r.BytesOut == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	counted, _, _ = s.DirectoryBytes()
	if counted-before < r.BytesOut*9/10 || counted-before > r.BytesOut*11/10 {
		t.Errorf("%d bytes of outputs count as %d", r.BytesOut, counted-before)
	}
	if after := measure(); after > counted-r.BytesIn/2 {
		t.Errorf("%d bytes are left of %d, of which %d were merged", after, counted, r.BytesIn)
	}
}

// TestBoundWithUncountedFile: a file whose length cannot be told is named, and the rest counts.
func TestBoundWithUncountedFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	defer s.Close() //nolint:errcheck // nothing depends on it
	put(t, s, "key", "value")
	s.SetBound(64<<20, false)
	if err := os.Symlink("itself", filepath.Join(dir, "itself")); err != nil { // a loop: nobody can open it
		t.Skip(err)
	}
	err := s.MeasureBound()
	var uncounted *bitcask.UncountedError
	if !errors.As(err, &uncounted) || uncounted.File != "itself" {
		t.Fatal(err)
	}
	if used, _, now := s.DirectoryBytes(); used < s.Stats().Bytes || now == 0 {
		t.Errorf("%d bytes of %d count", used, now)
	}
}
