package db_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

// onDisk is a directory of the operating system, for what only that does.
func onDisk(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a directory with open files cannot be renamed")
	}
	return filepath.Join(t.TempDir(), "store")
}

func openHere(t *testing.T, dir string, o db.Options) *db.Store {
	t.Helper()
	if o.SegmentSize == 0 {
		o.SegmentSize = 32 << 10
	}
	s, err := db.Open(dir, &o)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// putNumbered stores count values of 1 KB, with a deadline for every tenth.
func putNumbered(t *testing.T, s *db.Store, prefix string, from, count int) {
	t.Helper()
	for i := from; i < from+count; i++ {
		key := fmt.Sprint(prefix, i)
		must(t, s.String(key).Put(fmt.Appendf(nil, "%s %d %s", prefix, i, strings.Repeat("x", 1000))))
		if i%10 == 0 {
			_, err := s.Key(key).Expire(time.Hour)
			must(t, err)
		}
	}
}

// wantNumbered fails unless the store is sound and has these keys and no others.
func wantNumbered(t *testing.T, dir, prefix string, count int) {
	t.Helper()
	s, err := db.Open(dir, &db.Options{ReadOnly: true})
	must(t, err)
	defer s.Close()
	for i := range count {
		got, err := s.String(fmt.Sprint(prefix, i)).Get()
		if want := fmt.Sprintf("%s %d ", prefix, i); err != nil || !strings.HasPrefix(string(got), want) {
			t.Fatalf("%s: %s%d is %.20q, %v", dir, prefix, i, got, err)
		}
	}
	if s.Len() != count {
		t.Errorf("%s: %d keys, want %d", dir, s.Len(), count)
	}
	_, err = s.Check(context.Background(), func(f bitcask.Finding) { t.Errorf("%s: %+v", dir, f) })
	must(t, err)
}

// filesOf reads all files of a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		files[e.Name()] = string(b)
	}
	return files
}

func sameFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := filesOf(t, dir)
	for name, b := range want {
		if now, there := got[name]; !there || now != b {
			t.Errorf("%s was changed (there: %v)", name, there)
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s was made", name)
		}
	}
}

// An operator moves the directory of a running store away and puts a backup in its place: the store goes on in the directory that was
// moved, whatever it does, and the other one is not touched.
func TestReplacedDirectoryIsNotTouched(t *testing.T) {
	dir := onDisk(t)
	old, backup := dir+".old", dir+".backup"
	s := openHere(t, dir, db.Options{NoMerge: true})
	putNumbered(t, s, "k", 0, 100)
	_, err := s.Backup(context.Background(), backup)
	must(t, err)
	must(t, os.Rename(dir, old))
	must(t, os.Rename(backup, dir))
	before := filesOf(t, dir)

	for range 3 { // rotations, and something to merge
		putNumbered(t, s, "k", 0, 150)
	}
	must(t, s.Log().Rotate())
	_, err = s.Merge(context.Background(), merge.RunOptions{All: true})
	must(t, err)
	must(t, s.Log().SaveIndex())
	putNumbered(t, s, "k", 150, 20)
	again := filepath.Join(filepath.Dir(dir), "again")
	_, err = s.Backup(context.Background(), again)
	must(t, err)
	_, err = s.Check(context.Background(), func(f bitcask.Finding) { t.Errorf("%+v", f) })
	must(t, err)
	must(t, s.Close())

	sameFiles(t, dir, before)
	wantNumbered(t, dir, "k", 100)
	wantNumbered(t, old, "k", 170)
	wantNumbered(t, again, "k", 170)
	if _, err := os.Stat(filepath.Join(old, "TTL")); err != nil {
		t.Errorf("the TTL file is not where the store is: %v", err)
	}
	if ix := openHere(t, old, db.Options{}).Log().Recovery(); !ix.Indexed || len(ix.Removed) > 0 {
		t.Errorf("the next opening finds %+v", ix)
	}
}
