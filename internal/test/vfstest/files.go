package vfstest

import (
	"io"
	"testing"

	"github.com/stavedb/stave/internal/vfs"
)

// Create makes a file with the text in it and leaves it open until the test ends.
func Create(t testing.TB, fsys vfs.FS, name, text string) vfs.File {
	t.Helper()
	f, err := fsys.Open(name, vfs.Create)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if n, err := f.WriteAt([]byte(text), 0); err != nil || n != len(text) {
		t.Fatalf("wrote %d bytes of %d: %v", n, len(text), err)
	}
	return f
}

// Content is what a file holds.
func Content(t testing.TB, fsys vfs.FS, name string) string {
	t.Helper()
	f, err := fsys.Open(name, vfs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return Text(t, f)
}

// Text is what an open file holds.
func Text(t testing.TB, f vfs.File) string {
	t.Helper()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return string(b)
}
