package bitcask_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
)

// TestCheckByWorkers: several workers find what one finds, and report it in the order of the segments; and they end when the check
// is ended.
func TestCheckByWorkers(t *testing.T) {
	const segments, each = 40, 50
	fs := restore(t, nil)
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: fs, NoIndex: true}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range segments * each {
		put(t, s, fmt.Sprint("a key of some length ", i), strings.Repeat("x", i%100))
		if i%each == each-1 {
			if err := s.Rotate(); err != nil {
				t.Fatal(err)
			}
		}
	}
	waitHints(t, s, fs, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := fs.List("d")
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".hint") })
	slices.Sort(damaged)
	for _, name := range damaged {
		flipByte(t, fs, filepath.Join("d", name), 0.5)
	}
	if len(damaged) != segments {
		t.Fatalf("%d hints", len(damaged))
	}
	processors := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(processors)
	if s, err = bitcask.Open("d", seam.With(&bitcask.Options{ReadOnly: true}, seam.Options{FS: fs, NoIndex: true, NoHints: true})); err != nil {
		t.Fatal(err)
	}
	want := bitcask.CheckResult{Segments: segments + 1, Bytes: s.Stats().Bytes, Records: segments * each, Hints: segments, Keys: segments * each, Findings: segments}
	for _, workers := range []int{1, 2, 8, 8, 8, 8} {
		runtime.GOMAXPROCS(workers)
		var files []string
		found := func(f bitcask.Finding) { files = append(files, f.File) }
		if r, err := s.Check(t.Context(), found); err != nil || r != want || !slices.Equal(files, damaged) {
			t.Errorf("%d workers: %+v, %v, not %+v; %d files", workers, r, err, want, len(files))
		}
		ctx, end := context.WithCancel(t.Context())
		n := 0
		r, err := s.Check(ctx, func(bitcask.Finding) { n++; end() })
		if n == 0 || n != r.Findings || (err != nil || r != want) && !errors.Is(err, context.Canceled) { // it may have been done by then
			t.Errorf("%d workers, ended: %+v, %v, %d findings", workers, r, err, n)
		}
		if r, err := s.Check(ctx, found); !errors.Is(err, context.Canceled) || r.Records > 0 || r.Keys > 0 {
			t.Errorf("%d workers, ended before: %+v, %v", workers, r, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
