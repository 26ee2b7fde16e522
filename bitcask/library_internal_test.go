package bitcask

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/system"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

func putLibrary(t *testing.T, s *Store, name, text string) {
	t.Helper()
	commitNewer(t, s, func(tx *Tx) { must(t, tx.PutLibrary(name, []byte(text))) })
}

func wantLibraries(t *testing.T, s *Store, want map[string]string) {
	t.Helper()
	got, err := s.Libraries()
	must(t, err)
	if !maps.Equal(got, want) {
		t.Errorf("libraries of %d, want %d", len(got), len(want))
		for name, text := range got {
			t.Errorf("%s: %.40q (%d)", name, text, len(text))
		}
	}
}

// TestLibraries: texts of any length come back, also when a short one replaces a long one, after a reopening, a merge,
// and from a backup.
func TestLibraries(t *testing.T) {
	o := &Options{SegmentSize: 32 << 10, seam: seam.Options{FS: vfs.NewMem()}}
	s, err := Open("d", o)
	must(t, err)
	want := map[string]string{}
	lengths := []int{1, partSize - 1, partSize, partSize + 1, 3*partSize + 5, MaxLibrary, 2 * partSize, 10}
	for i, n := range lengths {
		text := strings.Repeat(string(rune('a'+i)), n)
		putLibrary(t, s, "one", text)
		want["one"] = text
		wantLibraries(t, s, want)
	}
	long := strings.Repeat("n", MaxLibraryName)
	for name, text := range map[string]string{"a:0": "colons", "a": strings.Repeat("x", 2*partSize), "gone": "soon", long: "long"} {
		putLibrary(t, s, name, text)
		want[name] = text
	}
	putLibrary(t, s, "gone", "")
	delete(want, "gone")
	wantLibraries(t, s, want)
	changes := s.LibraryChanges()
	tx, err := s.BeginAll(true)
	must(t, err)
	must(t, tx.PutLibrary("one", []byte("rolled back")))
	tx.End()
	wantLibraries(t, s, want)
	if s.LibraryChanges() != changes {
		t.Error("what was rolled back counts as a change")
	}
	must(t, s.Rotate())
	var ids []uint32
	for _, info := range s.Segments() {
		if info.Sealed {
			ids = append(ids, info.ID)
		}
	}
	_, err = s.Rewrite(context.Background(), ids, RewriteOptions{})
	must(t, err)
	_, err = s.Backup(context.Background(), "b")
	must(t, err)
	must(t, s.Close())
	for _, dir := range []string{"d", "b"} {
		s, err := Open(dir, o)
		must(t, err)
		wantLibraries(t, s, want)
		must(t, s.Close())
	}
}

func TestLibraryRefused(t *testing.T) {
	s, err := Open("d", &Options{seam: seam.Options{FS: vfs.NewMem()}})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	tx, err := s.BeginAll(true)
	must(t, err)
	defer tx.End()
	for name, text := range map[string]string{"": "x", strings.Repeat("n", MaxLibraryName+1): "x", "long": strings.Repeat("x", MaxLibrary+1)} {
		if err := tx.PutLibrary(name, []byte(text)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

// TestLibraryLost: a library that has lost a part, as package repair may leave it, is named, and the others are there.
// It can be put again.
func TestLibraryLost(t *testing.T) {
	o := &Options{seam: seam.Options{FS: vfs.NewMem()}}
	s, err := Open("d", o)
	must(t, err)
	text := strings.Repeat("x", 2*partSize)
	putLibrary(t, s, "whole", text)
	putLibrary(t, s, "mixed", strings.Repeat("y", 2*partSize))
	older := s.System("library:mixed:1")
	for _, name := range []string{"first", "last", "mixed"} {
		putLibrary(t, s, name, text)
	}
	for _, part := range []string{"first:0", "last:1"} {
		commitNewer(t, s, func(tx *Tx) { must(t, tx.PutSystem(system.LibraryPrefix+part, nil)) })
	}
	commitNewer(t, s, func(tx *Tx) { must(t, tx.PutSystem("library:mixed:1", older)) })
	must(t, s.Close())
	s, err = Open("d", o)
	must(t, err)
	got, err := s.Libraries()
	if !errors.Is(err, ErrLibrary) || !maps.Equal(got, map[string]string{"whole": text, "first": "", "last": "", "mixed": ""}) {
		t.Errorf("%d libraries, %v", len(got), err)
	}
	for _, name := range []string{"first", "last", "mixed"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	putLibrary(t, s, "first", "short")
	putLibrary(t, s, "last", "")
	putLibrary(t, s, "mixed", text)
	wantLibraries(t, s, map[string]string{"whole": text, "first": "short", "mixed": text})
	// A version that only newer code can read is refused as a whole.
	commitNewer(t, s, func(tx *Tx) { must(t, tx.PutSystem("library:whole:0", []byte{system.LibraryVersion + 1})) })
	must(t, s.Close())
	if _, err := Open("d", o); !errors.Is(err, ErrVersion) {
		t.Errorf("Open: %v", err)
	}
}
