package db_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
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
	wantNumberedIn(t, vfs.OS(), dir, prefix, count)
}

func wantNumberedIn(t *testing.T, fsys vfs.FS, dir, prefix string, count int) {
	t.Helper()
	s, err := db.Open(dir, seam.With(&db.Options{ReadOnly: true}, seam.Options{FS: fsys}))
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

// An operator moves the directory of a running store away and puts a backup in its place: the store goes on in the
// directory that was moved, whatever it does, and the other one is not touched.
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

// logged is a log to look at.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// eventually waits for something that is to happen within a second; a machine that is busy is given more.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func TestMovedDirectoryIsLoggedOnce(t *testing.T) {
	dir := onDisk(t)
	var log logged
	s := openHere(t, dir, db.Options{Logger: log.logger()})
	must(t, os.Rename(dir, dir+".moved"))
	eventually(t, "the move is not logged", func() bool { return log.count("the directory was moved") == 1 })
	must(t, os.Mkdir(dir, 0o700))
	eventually(t, "the replacement is not logged", func() bool { return log.count("another directory is in the place") == 1 })
	putNumbered(t, s, "k", 0, 100)
	time.Sleep(700 * time.Millisecond) // another look, at least
	must(t, s.Close())
	if n := log.count("the directory was moved") + log.count("another directory"); n != 2 {
		t.Errorf("%d lines are logged, want 2", n)
	}
	sameFiles(t, dir, nil)
	wantNumbered(t, dir+".moved", "k", 100)
}

// Changes to the directory of an open store, and the errors of its writes then.
var removals = []struct {
	name string
	do   func(t *testing.T, dir string)
	want []error // one of them
}{
	{"directory removed", func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }, []error{bitcask.ErrDirectoryGone, bitcask.ErrLockLost}},
	{"contents removed", func(t *testing.T, dir string) {
		for name := range filesOf(t, dir) {
			must(t, os.Remove(filepath.Join(dir, name)))
		}
	}, []error{bitcask.ErrDirectoryGone, bitcask.ErrLockLost}},
	{"moved and removed", func(t *testing.T, dir string) {
		must(t, os.Rename(dir, dir+".moved"))
		must(t, os.RemoveAll(dir+".moved"))
	}, []error{bitcask.ErrDirectoryGone, bitcask.ErrLockLost}},
	{"replaced and removed", func(t *testing.T, dir string) {
		must(t, os.RemoveAll(dir))
		must(t, os.Mkdir(dir, 0o700))
	}, []error{bitcask.ErrDirectoryGone, bitcask.ErrLockLost}},
	{"manifest removed", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "MANIFEST"))) }, []error{bitcask.ErrDirectoryGone}},
	{"active segment replaced", func(t *testing.T, dir string) {
		name := filepath.Join(dir, "000000001.data")
		b, err := os.ReadFile(name)
		must(t, err)
		must(t, os.WriteFile(name+".copy", b, 0o600))
		must(t, os.Rename(name+".copy", name))
	}, []error{bitcask.ErrDirectoryGone}},
	{"active segment is a link", func(t *testing.T, dir string) {
		name := filepath.Join(dir, "000000001.data")
		must(t, os.Rename(name, name+".aside"))
		must(t, os.Symlink("000000001.data.aside", name))
	}, []error{bitcask.ErrDirectoryGone}},
	{"LOCK removed", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "LOCK"))) }, []error{bitcask.ErrLockLost}},
	{"LOCK replaced", func(t *testing.T, dir string) {
		must(t, os.WriteFile(filepath.Join(dir, "LOCK.new"), nil, 0o600))
		must(t, os.Rename(filepath.Join(dir, "LOCK.new"), filepath.Join(dir, "LOCK")))
	}, []error{bitcask.ErrLockLost}},
}

// A store whose directory, or LOCK, is gone refuses writes within a second, in every mode, and serves reads.
func TestRemovedDirectoryIsNoticed(t *testing.T) {
	for _, mode := range []db.SyncMode{db.SyncInterval, db.SyncAlways, db.SyncNone} {
		for _, c := range removals {
			t.Run(fmt.Sprint(mode, "/", c.name), func(t *testing.T) {
				t.Parallel()
				dir := onDisk(t)
				var log logged
				s := openHere(t, dir, db.Options{Sync: mode, SegmentSize: 1 << 20, Logger: log.logger()})
				putNumbered(t, s, "k", 0, 20)
				c.do(t, dir)
				eventually(t, "the store has noticed nothing", func() bool { return s.Log().Err() != nil })
				err := s.String("later").Put([]byte("x"))
				if !errors.Is(err, bitcask.ErrFailed) || !slices.ContainsFunc(c.want, func(want error) bool { return errors.Is(err, want) }) {
					t.Errorf("a write gives %v, want one of %v", err, c.want)
				}
				if err != nil && strings.Contains(err.Error(), filepath.Dir(dir)) {
					t.Errorf("the error has a path: %v", err)
				}
				if got, err := s.String("k7").Get(); err != nil || !strings.HasPrefix(string(got), "k 7 ") {
					t.Errorf("a read gives %.20q, %v", got, err)
				}
				var now map[string]string
				if _, err := os.Stat(dir); err == nil {
					now = filesOf(t, dir)
				}
				if err := s.Close(); !errors.Is(err, bitcask.ErrFailed) {
					t.Errorf("Close gives %v", err)
				}
				if now != nil {
					sameFiles(t, dir, now)
				}
				if log.count("store refuses writes") != 1 {
					t.Errorf("the log has %q", log.text.String())
				}
			})
		}
	}
}

// With SyncAlways nothing is acknowledged into a file without a name, not even before anyone has looked.
func TestRemovedDirectoryAcknowledgesNothing(t *testing.T) {
	for range 20 {
		dir := onDisk(t)
		s := openHere(t, dir, db.Options{Sync: db.SyncAlways, SegmentSize: 1 << 20})
		putNumbered(t, s, "k", 0, 3)
		must(t, os.RemoveAll(dir))
		if err := s.String("later").Put([]byte("x")); !errors.Is(err, bitcask.ErrDirectoryGone) && !errors.Is(err, bitcask.ErrLockLost) {
			t.Fatalf("a write gives %v", err)
		}
	}
}

// Removing LOCK lets a second process in. The first one then writes nothing more.
func TestSecondStoreAfterLockIsRemoved(t *testing.T) {
	dir := onDisk(t)
	s := openHere(t, dir, db.Options{NoMerge: true})
	putNumbered(t, s, "k", 0, 200)
	must(t, os.Remove(filepath.Join(dir, "LOCK")))
	eventually(t, "the store has noticed nothing", func() bool { return s.Log().Err() != nil })
	other := openHere(t, dir, db.Options{NoMerge: true})
	putNumbered(t, other, "k", 200, 100)
	if _, err := s.Merge(context.Background(), merge.RunOptions{All: true}); !errors.Is(err, bitcask.ErrLockLost) {
		t.Errorf("a merge gives %v", err)
	}
	if err := s.String("k0").Put(nil); !errors.Is(err, bitcask.ErrLockLost) {
		t.Errorf("a write gives %v", err)
	}
	if err := s.Close(); !errors.Is(err, bitcask.ErrLockLost) {
		t.Errorf("Close gives %v", err)
	}
	putNumbered(t, other, "k", 300, 10)
	must(t, other.Close())
	wantNumbered(t, dir, "k", 310)
}

// Close writes nothing into a directory whose LOCK is lost, whether or not anyone has looked: another process may have
// it by now.
func TestCloseAfterLockIsLost(t *testing.T) {
	for name, before := range map[string]func(s *db.Store){
		"with a deadline": func(s *db.Store) { ok[bool](t)(s.Key("k7").Expire(time.Hour)) },
		"with a history":  func(s *db.Store) { ok[bitcask.History](t)(s.Log().BeginHistory()) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := onDisk(t)
			s := openHere(t, dir, db.Options{NoMerge: true, SegmentSize: 1 << 20})
			putNumbered(t, s, "k", 0, 20)
			before(s)
			must(t, s.Sync())
			must(t, os.Remove(filepath.Join(dir, "LOCK")))
			now := filesOf(t, dir)
			if err := s.Close(); !errors.Is(err, bitcask.ErrLockLost) {
				t.Errorf("Close gives %v", err)
			}
			sameFiles(t, dir, now)
		})
	}
}

// A merge that is at work when LOCK is lost neither publishes nor unlinks, whether or not anyone has looked.
func TestMergeAfterLockIsLost(t *testing.T) {
	dir := onDisk(t)
	s := openHere(t, dir, db.Options{NoMerge: true})
	for range 2 {
		putNumbered(t, s, "k", 0, 200)
	}
	must(t, s.Log().Rotate())
	var segments map[string]string
	once := sync.OnceFunc(func() {
		must(t, os.Remove(filepath.Join(dir, "LOCK")))
		segments = filesOf(t, dir)
	})
	ids := []uint32{}
	for _, sg := range s.Log().Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	_, err := s.Log().Rewrite(context.Background(), ids, bitcask.RewriteOptions{Throttle: func(int) error { once(); return nil }})
	if !errors.Is(err, bitcask.ErrLockLost) {
		t.Errorf("the merge gives %v", err)
	}
	for name := range segments {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil && strings.HasSuffix(name, ".data") && name < fmt.Sprintf("%09d", ids[len(ids)-1]+1) {
			t.Errorf("the merge took away %s", name)
		}
	}
	s.Close()
	wantNumbered(t, dir, "k", 200)
}

// A store that is opened by a symbolic link goes on in its directory when the link leads elsewhere.
func TestLinkedDirectory(t *testing.T) {
	dir := onDisk(t)
	must(t, os.MkdirAll(dir+".one", 0o700))
	must(t, os.MkdirAll(dir+".two", 0o700))
	must(t, os.Symlink(dir+".one", dir))
	s := openHere(t, dir, db.Options{})
	putNumbered(t, s, "k", 0, 100)
	must(t, os.Remove(dir))
	must(t, os.Symlink(dir+".two", dir))
	putNumbered(t, s, "k", 100, 100)
	must(t, s.Close())
	sameFiles(t, dir+".two", nil)
	wantNumbered(t, dir+".one", "k", 200)
}
