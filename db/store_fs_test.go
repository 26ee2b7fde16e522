package db_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// TestOpenFS opens a store where it was closed, and where it was killed, by the file systems that programs have: it
// holds the same, and nothing can be written.
func TestOpenFS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "store")
	s, err := db.Open(dir, &db.Options{NoMerge: true, Reserve: -1})
	must(t, err)
	for i := range 3000 {
		must(t, s.String(fmt.Sprint("key", i)).Put(fmt.Append(nil, "value", i)))
	}
	if _, err := s.Hash("h").Put("f", []byte("v")); err != nil {
		t.Fatal(err)
	}
	archive := func() (fs.FS, error) {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		if err := errors.Join(w.AddFS(os.DirFS(filepath.Dir(filepath.Dir(dir)))), w.Close()); err != nil {
			return nil, err
		}
		return zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	}
	same := func(t *testing.T, fsys fs.FS) {
		t.Helper()
		got, err := db.OpenFS(fsys, "data/store", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { must(t, got.Close()) }()
		if n := got.Stats().Keys; n != 3001 {
			t.Errorf("%d keys", n)
		}
		for i := range 3000 {
			if v, err := got.String(fmt.Sprint("key", i)).Get(); err != nil || string(v) != fmt.Sprint("value", i) {
				t.Fatalf("key%d: %q, %v", i, v, err)
			}
		}
		if v, err := got.Hash("h").Get("f"); err != nil || string(v) != "v" {
			t.Errorf("%q, %v", v, err)
		}
		if err := got.String("new").Put(nil); !errors.Is(err, db.ErrReadOnly) {
			t.Errorf("written: %v", err)
		}
		if _, err := got.Check(t.Context(), func(f bitcask.Finding) { t.Errorf("check: %v", f) }); err != nil {
			t.Error(err)
		}
	}
	for _, moment := range []string{"open", "closed"} {
		t.Run(moment, func(t *testing.T) {
			if moment == "closed" {
				must(t, s.Close())
			} else {
				must(t, s.Sync())
			}
			root := filepath.Dir(filepath.Dir(dir))
			same(t, os.DirFS(root))
			files := fstest.MapFS{}
			if err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					var text []byte
					text, err = os.ReadFile(filepath.Join(root, name))
					files[name] = &fstest.MapFile{Data: text}
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			same(t, files)
			zipped, err := archive()
			if err != nil {
				t.Fatal(err)
			}
			same(t, zipped)
		})
	}
	if _, err := db.OpenFS(fstest.MapFS{}, "nothing", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	if _, err := db.OpenFS(fstest.MapFS{"d/x": {}}, "d", nil); err == nil {
		t.Error("a directory without a store was opened")
	}
	if _, err := db.OpenFS(os.DirFS(t.TempDir()), "../x", nil); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a path that leads out: %v", err)
	}
}
