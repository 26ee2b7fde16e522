package merge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
)

func newMerger(t *testing.T, s *bitcask.Store, p merge.Policy) *merge.Merger {
	t.Helper()
	m, err := merge.New(s, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func openStore(t *testing.T, fs vfs.FS) *bitcask.Store {
	t.Helper()
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{SegmentSize: 4 << 10}, seam.Options{FS: fs}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func fill(t *testing.T, s *bitcask.Store, keys int, value string) {
	t.Helper()
	for i := range keys {
		if err := s.Put(fmt.Sprint("key", i), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
}

func rotate(t *testing.T, s *bitcask.Store) {
	t.Helper()
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
}

// Asking again and again comes to an end: what a merge cannot get rid of, be it
// tombstones that hide something older or headers, is no reason for another.
func TestTicksComeToAnEnd(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	if err := s.Put("old", bytes.Repeat([]byte("v"), 3000)); err != nil {
		t.Fatal(err)
	}
	fill(t, s, 200, "value") // segments that stay, with the oldest records
	for i := range 60 {
		if _, err := s.Delete(fmt.Sprint("key", i)); err != nil {
			t.Fatal(err)
		}
	}
	rotate(t, s)
	m := newMerger(t, s, merge.Policy{SmallBytes: 1})
	const enough = 10
	for i := 0; ; i++ {
		before := m.Status().Merges
		m.Tick(t.Context())
		if m.Status().Merges == before {
			break
		}
		if i == enough {
			t.Fatalf("%d merges, and there is still something to do: %+v", i, m.Plan(false).Choices)
		}
	}
	if m.Status().Merges == 0 || m.Status().Failures > 0 {
		t.Errorf("%+v", m.Status())
	}
	if _, err := s.Get("key1"); !errors.Is(err, bitcask.ErrNotFound) {
		t.Errorf("a deleted key: %v", err)
	}
}

// Pause ends a merge in the background, and only that.
func TestPause(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	for range 4 {
		fill(t, s, 200, "value")
	}
	rotate(t, s)
	m := newMerger(t, s, merge.Policy{BytesPerSecond: 1})
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Tick(context.Background())
	}()
	for !m.Status().Running {
	}
	m.Pause()
	<-done
	m.Tick(t.Context())
	if st := m.Status(); !st.Paused || st.Merges > 0 {
		t.Errorf("paused: %+v", st)
	}
	if _, err := m.Run(t.Context(), merge.RunOptions{Unlimited: true}); err != nil {
		t.Errorf("a merge by hand while paused: %v", err)
	}
	m.Resume()
	if st := m.Status(); st.Paused || st.Merges != 1 {
		t.Errorf("resumed: %+v", st)
	}
}

// A segment with damage is tried once in the background; a merge by hand reports the damage.
func TestDamageIsNotTriedAgain(t *testing.T) {
	fs := vfs.NewMem()
	s := openStore(t, fs)
	for i := range 4 {
		fill(t, s, 100, fmt.Sprint("value ", i))
	}
	rotate(t, s)
	const file = "000000004.data"
	name := filepath.Join("d", file)
	f, err := fs.Open(name, vfs.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(data, []byte("value 3"))
	if at < 0 {
		t.Fatal("no live record in it")
	}
	if _, err := f.WriteAt([]byte("V"), int64(at)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	m := newMerger(t, s, merge.Policy{SmallBytes: 4 << 10})
	for range 5 {
		m.Tick(t.Context())
	}
	if st := m.Status(); st.Failures != 1 || st.Merges == 0 {
		t.Errorf("%+v", st)
	}
	var bad *bitcask.CorruptError
	if _, err := m.Run(t.Context(), merge.RunOptions{All: true, Unlimited: true}); !errors.As(err, &bad) || bad.File != file {
		t.Errorf("by hand: %v", err)
	}
	if names, err := fs.List("d"); err != nil || !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, file) }) {
		t.Errorf("%s is gone: %v, %v", file, names, err)
	}
}
