package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// orphanParts is a file in pieces.
var orphanParts = [][]byte{[]byte("one "), []byte("two")}

// orphanText is what a store's directory has of it; "" for no file.
func orphanText(t *testing.T, fsys vfs.FS) string {
	t.Helper()
	dir := filepath.Join("store", serverside.OrphansDir)
	names, _ := fsys.List(dir)
	for _, name := range names {
		if name == "a.resp" {
			return vfstest.Content(t, fsys, filepath.Join(dir, name))
		}
	}
	return ""
}

// TestOrphansAreOnDisk: the file is synced before it has its name, then its name, then that of its directory. One that is there is
// not written again, and its name is synced once more: a crash may have come before.
func TestOrphansAreOnDisk(t *testing.T) {
	rec := vfstest.NewRecorder(vfs.NewMem())
	s := ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: rec})))
	defer s.Close()
	keep := func(isNew bool) string {
		t.Helper()
		before := len(rec.Trace())
		if is, err := serverside.DB.KeepOrphans(s, "a.resp", orphanParts); err != nil || is != isNew {
			t.Fatalf("new: %v, %v", is, err)
		}
		var own []string
		for line := range strings.Lines(rec.Trace()[before:]) {
			if line = strings.TrimSpace(line); strings.Contains(line, "orphans") || line == "sync-dir store" {
				what, _, missing := strings.Cut(line, " (")
				if missing {
					what += ": not there"
				}
				own = append(own, what)
			}
		}
		return strings.Join(own, "\n")
	}
	equal(t, "what is done", keep(true), strings.Join([]string{
		"mkdir store/orphans", "open store/orphans/a.resp: not there", "remove store/orphans/a.resp.new: not there", "create store/orphans/a.resp.new",
		"write store/orphans/a.resp.new 0+4", "write store/orphans/a.resp.new 4+3", "sync store/orphans/a.resp.new", "close store/orphans/a.resp.new",
		"rename store/orphans/a.resp.new -> store/orphans/a.resp", "sync-dir store/orphans", "sync-dir store",
	}, "\n"))
	equal(t, "what is done again", keep(false), strings.Join([]string{
		"mkdir store/orphans", "open store/orphans/a.resp", "close store/orphans/a.resp", "sync-dir store/orphans", "sync-dir store",
	}, "\n"))
	equal(t, "the file", orphanText(t, rec), "one two")
}

// TestOrphansFail: whatever fails, there is an error, and the file is whole or not there. The next attempt makes it.
func TestOrphansFail(t *testing.T) {
	for n := 0; ; n++ {
		fault := vfstest.NewFault(vfs.NewMem())
		s := ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{NoMerge: true}, seam.Options{FS: fault})))
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpMkdir, vfstest.OpCreate, vfstest.OpWrite, vfstest.OpSync, vfstest.OpClose, vfstest.OpRename, vfstest.OpSyncDir}, Skip: n, Err: syscall.EIO})
		_, err := serverside.DB.KeepOrphans(s, "a.resp", orphanParts)
		failed := fault.Failed() > 0
		fault.Heal()
		if failed != errors.Is(err, syscall.EIO) {
			t.Errorf("failure %d: %v", n, err)
		}
		if text := orphanText(t, fault); text != "" && text != "one two" || err == nil && text == "" {
			t.Errorf("failure %d leaves %q", n, text)
		}
		if _, err := serverside.DB.KeepOrphans(s, "a.resp", orphanParts); err != nil || orphanText(t, fault) != "one two" {
			t.Errorf("after failure %d: %v, %q", n, err, orphanText(t, fault))
		}
		must(t, s.Close())
		if !failed {
			return
		}
	}
}

// TestOrphansStay: an opening, a check, a merge and a backup have nothing to do with the directory.
func TestOrphansStay(t *testing.T) {
	mem := vfs.NewMem()
	open := func(o db.Options) *db.Store {
		return ok[*db.Store](t)(db.Open("store", seam.With(&o, seam.Options{FS: mem})))
	}
	s := open(db.Options{})
	must(t, s.String("k").Put([]byte("v")))
	if _, err := serverside.DB.KeepOrphans(s, "a.resp", orphanParts); err != nil {
		t.Fatal(err)
	}
	must(t, s.Close())
	s = open(db.Options{})
	if unknown := s.Log().Recovery().Unknown; len(unknown) > 0 {
		t.Errorf("not known: %q", unknown)
	}
	must(t, s.String("k").Put([]byte("w")))
	_, err := s.Merge(t.Context(), db.MergeOptions{All: true})
	must(t, err)
	ok[bitcask.CheckResult](t)(s.Check(t.Context(), func(f bitcask.Finding) { t.Errorf("a check: %v", f) }))
	_, err = s.Backup(t.Context(), "copy")
	must(t, err)
	if names, err := mem.List("copy"); err != nil || len(names) == 0 || slices.Contains(names, serverside.OrphansDir) {
		t.Errorf("a backup has %q, %v", names, err)
	}
	must(t, s.Close())
	s = open(db.Options{ReadOnly: true})
	defer s.Close()
	if _, err := serverside.DB.KeepOrphans(s, "b.resp", orphanParts); !errors.Is(err, db.ErrReadOnly) {
		t.Errorf("a store that is open for reading: %v", err)
	}
	equal(t, "the file", orphanText(t, mem), "one two")
}

// TestOrphansAreSeen: what is in the directory at the moment, with that of others; nothing where there is none; and an error where
// that cannot be said.
func TestOrphansAreSeen(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": vfs.NewMem(), "system": vfs.OS()} {
		dir := "store"
		if name == "system" {
			dir = filepath.Join(t.TempDir(), dir)
		}
		s := ok[*db.Store](t)(db.Open(dir, seam.With(&db.Options{NoMerge: true}, seam.Options{FS: fsys})))
		seen := func(want ...string) {
			t.Helper()
			if names, err := serverside.DB.Orphans(s); err != nil || !slices.Equal(names, want) {
				t.Errorf("%s: %q, %v, want %q", name, names, err, want)
			}
		}
		seen()
		for _, file := range []string{"b.resp", "a.resp"} {
			if _, err := serverside.DB.KeepOrphans(s, file, orphanParts); err != nil {
				t.Fatal(err)
			}
		}
		seen("a.resp", "b.resp")
		if err := fsys.Remove(filepath.Join(dir, serverside.OrphansDir, "a.resp")); err != nil {
			t.Fatal(err)
		}
		seen("b.resp")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	s := ok[*db.Store](t)(db.Open(dir, nil))
	defer s.Close()
	if err := os.WriteFile(filepath.Join(dir, serverside.OrphansDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if names, err := serverside.DB.Orphans(s); err == nil {
		t.Errorf("a file in the way: %q", names)
	}
}
