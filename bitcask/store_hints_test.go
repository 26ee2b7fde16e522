package bitcask_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestHintGoodInPart opens a store whose hint is damaged in one of its blocks:
// what the good ones before it say counts, the rest comes from the data, and
// nothing is there twice or missing.
func TestHintGoodInPart(t *testing.T) {
	const keys = 12_000 // more than one block of a hint
	fs := vfs.NewMem()
	o := seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: fs, NoIndex: true})
	s, err := bitcask.Open("d", o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys + keys/2 {
		put(t, s, fmt.Sprint("a key of some length ", i%keys), fmt.Sprint(i))
	}
	if err := s.Rotate(); err != nil {
		t.Fatal(err)
	}
	waitHints(t, s, fs, true)
	if n, err := s.HintBlocks(sealed(s)[0]); err != nil || n < 3 {
		t.Fatalf("%d blocks, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := fs.List("d")
	if err != nil {
		t.Fatal(err)
	}
	var hint string
	for _, name := range names {
		if strings.HasSuffix(name, ".hint") {
			hint = filepath.Join("d", name)
		}
	}
	for _, part := range []float64{0.01, 0.5, 0.999} {
		flipByte(t, fs, hint, part)
		if s, err = bitcask.Open("d", o); err != nil {
			t.Fatal(err)
		}
		if n := s.Recovery().Scanned; n != 1 {
			t.Errorf("damage at %v: %d segments scanned", part, n)
		}
		if n := s.Len(0); n != keys {
			t.Errorf("damage at %v: %d keys", part, n)
		}
		for i := range keys {
			n := i
			if i < keys/2 {
				n += keys
			}
			want(t, s, fmt.Sprint("a key of some length ", i), fmt.Sprint(n))
		}
		check(t, s)
		waitHints(t, s, fs, true) // it is made anew
		if part == 0.999 {
			if err := rewriteAll(s); err != nil {
				t.Fatal(err)
			}
			check(t, s)
			if n := s.Len(0); n != keys {
				t.Errorf("after a merge: %d keys", n)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// flipByte changes the byte of a file that follows that part of it.
func flipByte(t *testing.T, fs vfs.FS, name string, part float64) {
	t.Helper()
	f, err := fs.Open(name, vfs.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	at := int64(float64(size) * part)
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 4
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}
