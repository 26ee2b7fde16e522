package bitcask_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

const backupPuts = 400 // of garbage

func backupOptions(fsys vfs.FS) *bitcask.Options {
	return seam.With(&bitcask.Options{SegmentSize: 2 << 10}, seam.Options{FS: fsys, NoMapping: true})
}

func backup(t *testing.T, s *bitcask.Store, dir string) bitcask.BackupResult {
	t.Helper()
	r, err := s.Backup(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// untouched wants the files of a directory to be unchanged, except the one with a lock's holder.
func untouched(t *testing.T, fsys vfs.FS, dir string, was map[string][]byte) {
	t.Helper()
	now := snapshot(t, fsys, dir)
	delete(now, "LOCK")
	delete(was, "LOCK")
	if !maps.EqualFunc(now, was, slices.Equal[[]byte]) {
		t.Errorf("%s has changed: it has %q, it had %q", dir, slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(was)))
	}
}

// writesToLinked lists the writes to files that had been linked before.
func writesToLinked(events []vfstest.Event) (list []string) {
	linked := map[int]bool{}
	for _, e := range events {
		switch e.Op {
		case vfstest.OpLink:
			linked[e.File] = e.Err == nil
		case vfstest.OpWrite, vfstest.OpTruncate:
			if linked[e.File] {
				list = append(list, e.String())
			}
		}
	}
	return list
}

// TestBackupIsAStoreOfItsOwn makes a backup, and one of that, and changes all three in turn, with merges: none of it
// shows in the others, byte for byte, and no file with two names is ever written to.
func TestBackupIsAStoreOfItsOwn(t *testing.T) {
	for _, noHints := range []bool{false, true} {
		t.Run(fmt.Sprint("no hints ", noHints), func(t *testing.T) {
			rec := vfstest.NewRecorder(vfs.NewMem())
			o := backupOptions(rec)
			seam.Of(o).NoHints = noHints
			s := open(t, "a", o)
			values := garbage(t, s, backupPuts)
			if err := rewriteAll(s); err != nil {
				t.Fatal(err)
			}
			maps.Copy(values, overwrite(t, s, "first"))
			r := backup(t, s, "b")
			if r.Linked == 0 || r.Copied == 0 || r.Copied > 2 || r.Linked+r.Copied != r.Segments || r.Sequence != s.Sequence() || r.BytesLinked == 0 || r.BytesCopied == 0 {
				t.Errorf("%+v of %d segments at sequence %d", r, len(s.Segments()), s.Sequence())
			}
			stores := map[string]map[string]string{"a": values}
			was := map[string]map[string][]byte{"b": snapshot(t, rec, "b")}
			readBackup(t, rec, "b", values)
			untouched(t, rec, "b", was["b"])
			stores["b"] = maps.Clone(values)
			for i, step := range []struct{ change, copyTo string }{{change: "a"}, {change: "b", copyTo: "c"}, {change: "c"}, {change: "b"}, {change: "a"}} {
				if i > 0 { // the first goes on as it is
					s = open(t, step.change, o)
				}
				maps.Copy(stores[step.change], overwrite(t, s, step.change+" "))
				if step.copyTo != "" {
					backup(t, s, step.copyTo)
					stores[step.copyTo] = maps.Clone(stores[step.change])
				}
				if err := s.Rotate(); err != nil {
					t.Fatal(err)
				}
				if err := rewriteAll(s); err != nil {
					t.Fatal(err)
				}
				holds(t, s, stores[step.change], backupPuts)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				for dir, files := range was {
					if dir != step.change {
						untouched(t, rec, dir, files)
					}
				}
				for dir := range stores {
					was[dir] = snapshot(t, rec, dir)
				}
			}
			if list := writesToLinked(rec.Events()); len(list) > 0 {
				t.Errorf("files with two names were written to: %q", list)
			}
		})
	}
}

// overwrite puts some keys and returns them.
func overwrite(t *testing.T, s *bitcask.Store, text string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for i := range 20 {
		key := fmt.Sprint("key", i)
		values[key] = fmt.Sprint(text, i)
		put(t, s, key, values[key])
	}
	return values
}

// readBackup opens a backup for reading and wants it to be sound and to hold these values.
func readBackup(t *testing.T, fsys vfs.FS, dir string, values map[string]string) {
	t.Helper()
	o := backupOptions(fsys)
	o.ReadOnly, seam.Of(o).NoIndex = true, true
	s, err := bitcask.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, s, values, backupPuts)
	if r := s.Recovery(); r.TornBytes > 0 || len(r.Removed) > 0 || len(r.Unknown) > 0 {
		t.Errorf("the backup had to be recovered: %+v", r)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestBackupOfAnEmptyStore: there is nothing to link or to copy, and sequence numbers still go on.
func TestBackupOfAnEmptyStore(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	backup(t, s, "b")
	readBackup(t, mem, "b", nil)
	put(t, s, "k", "v")
	if _, err := s.Delete("k"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Rotate(), rewriteAll(s)); err != nil {
		t.Fatal(err)
	}
	if r := backup(t, s, "c"); r.Segments != 0 || r.Sequence != 2 {
		t.Errorf("%+v", r)
	}
	b := open(t, "c", backupOptions(mem))
	if got := b.Sequence(); got != 2 {
		t.Errorf("the copy continues after sequence %d", got)
	}
	put(t, b, "k", "w")
	want(t, b, "k", "w")
	if b.StoreID() == s.StoreID() {
		t.Error("the copy has the store's id")
	}
}

// TestBackupCopiesWhereItCannotLink does so with files and hints, and with a store open for reading also where a merge
// of the writer has taken names away.
func TestBackupCopiesWhereItCannotLink(t *testing.T) {
	mem := vfs.NewMem()
	rec := vfstest.NewRecorder(mem)
	fault := vfstest.NewFault(rec)
	s := open(t, "a", backupOptions(fault))
	values := garbage(t, s, backupPuts)
	reader := backupOptions(mem)
	reader.ReadOnly = true
	early := open(t, "a", reader)
	if r := backup(t, early, "linked"); r.Linked == 0 {
		t.Errorf("a reader links nothing: %+v", r)
	}
	if err := rewriteAll(s); err != nil {
		t.Fatal(err)
	}
	if r := backup(t, early, "read"); r.Linked > 0 || r.Copied != r.Segments {
		t.Errorf("a reader whose files are gone: %+v", r)
	}
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpLink}, Err: syscall.EXDEV, Sticky: true})
	if r := backup(t, s, "far"); r.Linked > 0 || r.Copied != r.Segments || r.BytesCopied == 0 {
		t.Errorf("across file systems: %+v", r)
	}
	unsyncedBefore(t, rec.Events(), "far.partial")
	if n, m := len(snapshot(t, mem, "far")), len(snapshot(t, mem, "linked")); n < 5 || m < 5 {
		t.Errorf("%d and %d files", n, m)
	}
	for _, dir := range []string{"linked", "read", "far"} {
		readBackup(t, mem, dir, values)
	}
}

// unsyncedBefore wants everything in a directory to be on disk when it gets its other name.
func unsyncedBefore(t *testing.T, events []vfstest.Event, dir string) {
	t.Helper()
	names, bytes := false, map[string]bool{}
	for _, e := range events {
		within := filepath.Dir(e.Name) == dir
		switch {
		case e.Op == vfstest.OpRenameDir && e.Name == dir:
			if names || len(bytes) > 0 {
				t.Errorf("not on disk yet when %s is renamed: names %v, %q", dir, names, slices.Sorted(maps.Keys(bytes)))
			}
			return
		case e.Op == vfstest.OpSyncDir && e.Name == dir:
			names = false
		case !within:
		case e.Op == vfstest.OpWrite:
			bytes[e.Name] = true
		case e.Op == vfstest.OpSync:
			delete(bytes, e.Name)
		case e.Op == vfstest.OpCreate, e.Op == vfstest.OpRename, e.Op == vfstest.OpRemove:
			names = true
		}
	}
	t.Errorf("%s is never renamed", dir)
}

// TestBackupPinsWhatAMergeTakesAway merges everything in the middle of a backup, which gets the old state, and then the
// files go.
func TestBackupPinsWhatAMergeTakesAway(t *testing.T) {
	for _, op := range []vfstest.Op{vfstest.OpLink, vfstest.OpCreate} {
		mem := vfs.NewMem()
		fault := vfstest.NewFault(mem)
		s := open(t, "a", backupOptions(fault))
		values := garbage(t, s, backupPuts)
		sure := maps.Clone(values)
		before := map[string]bool{} // the segments that hold something: the next one may be empty, and is not in the backup
		for _, sg := range s.Segments() {
			before[sg.File] = sg.Records > 0
		}
		var reached atomic.Bool
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{op}, Path: "*.data", Sticky: true, Do: func(e vfstest.Event) {
			if filepath.Dir(e.Name) == "a" && e.Op == vfstest.OpCreate || !reached.CompareAndSwap(false, true) {
				return // the store's own next segment
			}
			maps.Copy(values, overwrite(t, s, "while it is made "))
			if err := errors.Join(s.Rotate(), rewriteAll(s)); err != nil {
				t.Error(err)
			}
			for name, full := range before {
				if _, there := snapshot(t, mem, "a")[name]; full && !there {
					t.Errorf("%s is gone already", name)
				}
			}
		}})
		backup(t, s, "b")
		if !reached.Load() {
			t.Fatalf("%v: nothing came in between", op)
		}
		readBackup(t, mem, "b", sure)
		holds(t, s, values, backupPuts)
		names := snapshot(t, mem, "a")
		for _, sg := range s.Segments() {
			delete(names, sg.File)
		}
		for name := range names {
			if _, was := before[name]; was {
				t.Errorf("%s is still there", name)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackupRefuses: a directory in the way stays as it is.
func TestBackupRefuses(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	garbage(t, s, backupPuts)
	write := func(name string) {
		t.Helper()
		f, err := mem.Open(name, vfs.Create)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refuse := func(dir string, cause error) {
		t.Helper()
		if _, err := s.Backup(t.Context(), dir); !errors.Is(err, cause) {
			t.Errorf("backup to %s: %v, want %v", dir, err, cause)
		}
	}
	for _, dir := range []string{"full", "other.partial", "locked.partial", "left.partial", "empty"} {
		if err := mem.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	write("full/anything")
	write("other.partial/mine")
	write("file")
	refuse("full", bitcask.ErrNotEmpty)
	refuse("a", bitcask.ErrNotEmpty)
	refuse("other", bitcask.ErrNotEmpty)
	refuse("none/b", fs.ErrNotExist)
	refuse("a/b", fs.ErrInvalid)
	refuse("./x/../a/b/c", fs.ErrInvalid)
	if _, err := s.Backup(t.Context(), "file"); err == nil {
		t.Error("a file was replaced")
	}
	if names, _ := mem.List("other.partial"); !slices.Equal(names, []string{"mine"}) {
		t.Errorf("other.partial has become %q", names)
	}
	lock, err := mem.Lock("locked.partial/LOCK")
	if err != nil {
		t.Fatal(err)
	}
	write("locked.partial/000000001.data")
	refuse("locked", bitcask.ErrLocked)
	if names, _ := mem.List("locked.partial"); len(names) != 2 {
		t.Errorf("what is left of a backup that is being made is %q", names)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	write("left.partial/000000077.data")
	for _, dir := range []string{"locked", "left", "empty", "./x/../new/"} {
		backup(t, s, dir)
	}
	for _, dir := range []string{"file.partial", "locked.partial", "left.partial", "full.partial"} {
		if names, err := mem.List(dir); err == nil {
			t.Errorf("%s is left, with %q", dir, names)
		}
	}
	if files := snapshot(t, mem, "left"); files["000000077.data"] != nil || files["MANIFEST"] == nil {
		t.Errorf("the backup is %q", slices.Sorted(maps.Keys(files)))
	}
}

// TestBackupIsSalvaged: a copy that has gone on, with segments of two stores, is repaired like any other, with its
// manifest and without.
func TestBackupIsSalvaged(t *testing.T) {
	for _, without := range []bool{false, true} {
		mem := vfs.NewMem()
		s := open(t, "a", backupOptions(mem))
		values := garbage(t, s, backupPuts)
		backup(t, s, "b")
		b := open(t, "b", backupOptions(mem))
		maps.Copy(values, overwrite(t, b, "later "))
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if without {
			if err := mem.Remove(filepath.Join("b", "MANIFEST")); err != nil {
				t.Fatal(err)
			}
		}
		r, err := repair.Salvage(t.Context(), "b", "c", backupOptions(mem))
		if err != nil || len(r.Lost) > 0 || r.NoManifest != without {
			t.Fatalf("%+v, %v", r, err)
		}
		holds(t, open(t, "c", backupOptions(mem)), values, backupPuts)
	}
}

// TestBackupOfADamagedStore: damage that a reader tolerates is not copied as if it were sound.
func TestBackupOfADamagedStore(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	garbage(t, s, backupPuts)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := mem.Open(filepath.Join("a", "000000001.data"), vfs.ReadWrite)
	if err == nil {
		_, err = f.WriteAt([]byte("X"), 0)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	o := backupOptions(mem)
	o.ReadDamaged = true
	var corrupt *bitcask.CorruptError
	if _, err := open(t, "a", o).Backup(t.Context(), "b"); !errors.As(err, &corrupt) || corrupt.File != "000000001.data" {
		t.Errorf("backup of a damaged store: %v", err)
	}
	if names, _ := mem.List("."); slices.Contains(names, "b") || slices.Contains(names, "b.partial") {
		t.Errorf("left: %q", names)
	}
}

// TestBackupEnds when its context does, and when the store is closed meanwhile; nothing is left of it.
func TestBackupEnds(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	s := open(t, "a", backupOptions(fault))
	garbage(t, s, backupPuts)
	ctx, cancel := context.WithCancel(t.Context())
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpLink}, Do: func(vfstest.Event) { cancel() }})
	if _, err := s.Backup(ctx, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := s.Backup(ctx, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	closed := make(chan error)
	fault.Heal()
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpLink}, Do: func(vfstest.Event) {
		go func() { closed <- s.Close() }()
		for {
			if _, err := s.Get("key1"); errors.Is(err, bitcask.ErrClosed) {
				return
			}
		}
	}})
	_, err := s.Backup(t.Context(), "b")
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err != nil && !errors.Is(err, bitcask.ErrClosed) { // it may have been done before it was cancelled
		t.Errorf("closed meanwhile: %v", err)
	}
	if _, err := s.Backup(t.Context(), "c"); !errors.Is(err, bitcask.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if names, _ := mem.List("."); slices.Contains(names, "b.partial") || slices.Contains(names, "c") || slices.Contains(names, "b") != (err == nil) {
		t.Errorf("left: %q", names)
	}
	if leaks := mem.Leaks(); len(leaks) > 0 {
		t.Errorf("left open: %q", leaks)
	}
}

// TestBackupSharesFiles looks at the inodes of the operating system.
func TestBackupSharesFiles(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	s := open(t, from, &bitcask.Options{SegmentSize: 2 << 10})
	values := garbage(t, s, backupPuts)
	r := backup(t, s, to)
	shared := 0
	for _, sg := range s.Segments() {
		a, errA := os.Stat(filepath.Join(from, sg.File))
		b, errB := os.Stat(filepath.Join(to, sg.File))
		switch {
		case errA != nil:
			t.Error(errA)
		case errB == nil && os.SameFile(a, b):
			shared++
		}
	}
	if shared != r.Linked || shared == 0 {
		t.Errorf("%d shared files, %+v", shared, r)
	}
	b := open(t, to, nil)
	holds(t, b, values, backupPuts)
}
