// Package bitcasktest has what the tests of package bitcask and those in bitcask/test do with a store alike.
package bitcasktest

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/vfs"
)

// Open opens a store and checks it in full when the test ends.
func Open(t *testing.T, dir string, o *bitcask.Options) *bitcask.Store {
	t.Helper()
	s, err := bitcask.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// Put writes a string.
func Put(t *testing.T, s *bitcask.Store, key, value string) {
	t.Helper()
	if err := s.Put(key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

// Want fails the test unless the key has the value.
func Want(t *testing.T, s *bitcask.Store, key, value string) {
	t.Helper()
	got, err := s.Get(key)
	if err != nil || string(got) != value {
		t.Fatalf("get %q = %.40q, %v; want %.40q", key, got, err, value)
	}
}

// WantNone fails the test if there is the key.
func WantNone(t *testing.T, s *bitcask.Store, key string) {
	t.Helper()
	if got, err := s.Get(key); !errors.Is(err, bitcask.ErrNotFound) {
		t.Fatalf("get %q = %.40q, %v; want not found", key, got, err)
	}
}

// Check fails the test if the store is not sound.
func Check(t *testing.T, s *bitcask.Store) {
	t.Helper()
	if _, err := s.Check(context.Background(), func(f bitcask.Finding) { t.Errorf("check: %v", f) }); err != nil {
		t.Fatal(err)
	}
}

// Snapshot reads every file of a directory: what a killed process leaves.
// Snapshot is the bytes of all files of a directory. Of a file system in memory
// they are of one moment, also while a store seals segments and writes hints.
func Snapshot(t *testing.T, fs vfs.FS, dir string) map[string][]byte {
	t.Helper()
	if m, ok := fs.(*vfs.Mem); ok {
		fs = m.Clone()
	}
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, name := range names {
		files[name] = Read(t, fs, filepath.Join(dir, name))
	}
	return files
}

// Restore makes the directory d of files from Snapshot, without LOCK.
func Restore(t *testing.T, files map[string][]byte) *vfs.Mem {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		if name == "LOCK" {
			continue
		}
		f, err := fs.Open(filepath.Join("d", name), vfs.Create)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// Read returns the content of a file.
func Read(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name, vfs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if n > 0 {
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// InAll runs fn in a transaction on every key.
func InAll(t *testing.T, s *bitcask.Store, fn func(tx *bitcask.Tx) error) {
	t.Helper()
	tx, err := s.BeginAll(true)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.End()
	if err := fn(tx); err != nil {
		t.Fatal(err)
	}
}

// FirstData is the name of the first segment.
const FirstData = "000000001.data"

// RewriteAll merges all sealed segments.
func RewriteAll(s *bitcask.Store) error {
	var ids []uint32
	for _, sg := range s.Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	_, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{})
	return err
}

// Frames is the bytes of an undamaged segment without the zeros that its writer has reserved.
func Frames(b []byte) []byte {
	const header, frameHeader, sizeBits = 40, 24, 1<<30 - 1 // docs/FORMAT.md
	end := header
	for end+frameHeader <= len(b) {
		size := binary.LittleEndian.Uint32(b[end+4:]) & sizeBits
		if size == 0 {
			break
		}
		end += int(size)
	}
	return b[:min(end, len(b))]
}

// NeverIdle is SyncEvery of stores whose log a test truncates: one that has been idle has noted where its log ends, and
// anything missing before that is damage. On a busy machine a second is soon over.
const NeverIdle = time.Hour
