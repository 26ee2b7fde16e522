package db_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// Files that describe the log and are of another moment, or of another
// history, of the same store. None is believed, and none stays where it could
// be believed later.

const staleKeys = 600

// indexedMeanwhile makes a store whose INDEX is written while all keys are
// deleted: before is what a copy of the log had when the INDEX was begun, after
// is the store once it was there.
func indexedMeanwhile(t *testing.T, whole bool) (before, after *vfs.Mem) {
	t.Helper()
	mem := vfs.NewMem()
	faults := vfstest.NewFault(mem)
	s := openStale(t, faults)
	fillStale(t, s)
	faults.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "INDEX.new", Do: func(vfstest.Event) {
		if before == nil {
			before = mem.Clone()
			deleteStale(t, s, whole)
		}
	}})
	must(t, s.Log().SaveIndex())
	after = mem.Clone()
	must(t, s.Close())
	return before, after
}

func openStale(t *testing.T, fsys vfs.FS) *db.Store {
	t.Helper()
	s, err := db.Open("d", seam.With(&db.Options{Sync: db.SyncNone, NoMerge: true, ExpireEvery: -1}, seam.Options{FS: fsys}))
	must(t, err)
	return s
}

// fillStale puts keys with such long fields that an INDEX takes several writes.
func fillStale(t *testing.T, s *db.Store) {
	t.Helper()
	long := strings.Repeat("f", 5000)
	for i := range staleKeys {
		_, err := s.Hash(fmt.Sprint("k", i)).Put(long, []byte("v"))
		must(t, err)
	}
}

// deleteStale deletes all of them, in one commit or each by itself.
func deleteStale(t *testing.T, s *db.Store, whole bool) {
	t.Helper()
	if !whole {
		for i := range staleKeys {
			_, err := s.Key(fmt.Sprint("k", i)).Delete()
			must(t, err)
		}
		return
	}
	must(t, s.Update(func(tx *db.Tx) error {
		for i := range staleKeys {
			if _, err := tx.Key(fmt.Sprint("k", i)).Delete(); err != nil {
				return err
			}
		}
		return nil
	}))
}

// goOn writes new keys to a store, ends it by closing or by killing, and sees
// that all of them are there when it is opened again, with an INDEX and without.
func goOn(t *testing.T, mem *vfs.Mem, keys int, kill bool) {
	t.Helper()
	s := openStale(t, mem)
	if _, stays := filesIn(t, mem)[bitcask.IndexFile]; stays {
		t.Error("the INDEX is still there when the first write is accepted")
	}
	for i := range keys {
		must(t, s.String(fmt.Sprint("new", i)).Put([]byte("value")))
	}
	if kill {
		killed := mem.Clone()
		must(t, s.Close())
		mem = killed
	} else {
		must(t, s.Close())
	}
	for _, noIndex := range []bool{false, true} {
		s, err := db.Open("d", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1, ReadOnly: true}, seam.Options{FS: mem, NoIndex: noIndex}))
		must(t, err)
		lost := 0
		for i := range keys {
			if v, err := s.String(fmt.Sprint("new", i)).Get(); err != nil || string(v) != "value" {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("NoIndex %v: %d of %d keys lost", noIndex, lost, keys)
		}
		nothingFound(t, s)
		must(t, s.Close())
	}
}

// nothingFound has a check find nothing.
func nothingFound(t *testing.T, s *db.Store) {
	t.Helper()
	var found []bitcask.Finding
	_, err := s.Check(context.Background(), func(f bitcask.Finding) { found = append(found, f) })
	must(t, err)
	if len(found) > 0 {
		t.Errorf("check: %d findings, the first: %v", len(found), found[0])
	}
}

// takeFile puts a file of one store in the place of that of another; to is
// removed if from has none.
func takeFile(t *testing.T, to, from *vfs.Mem, name string) {
	t.Helper()
	if _, there := filesIn(t, to)[name]; there {
		must(t, to.Remove(filepath.Join("d", name)))
	}
	if b, ok := filesIn(t, from)[name]; ok {
		f, err := to.Open(filepath.Join("d", name), vfs.Create)
		must(t, err)
		_, err = f.WriteAt([]byte(b), 0)
		must(t, err)
		must(t, f.Close())
	}
}

// TestIndexAheadOfTheLog opens stores whose log ends before what their INDEX
// knows: a copy that was made meanwhile, file after file, and a log that was cut.
func TestIndexAheadOfTheLog(t *testing.T) {
	for _, how := range []string{"copied", "cut"} {
		for _, kill := range []bool{false, true} {
			for _, keys := range []int{50, 4 * staleKeys} { // less than has been truncated, and more
				t.Run(fmt.Sprintf("%s, %d keys, killed %v", how, keys, kill), func(t *testing.T) {
					before, after := indexedMeanwhile(t, false)
					mem := before
					if how == "copied" {
						takeFile(t, mem, after, bitcask.IndexFile)
						must(t, mem.Remove("d/INDEX.new"))
					} else {
						mem = after
						cutTo(t, mem, before, "000000001.data")
					}
					goOn(t, mem, keys, kill)
				})
			}
		}
	}
}

// cutTo cuts a file to the length that its commits have in another store.
func cutTo(t *testing.T, mem, shorter *vfs.Mem, name string) {
	t.Helper()
	length := len(strings.TrimRight(filesIn(t, shorter)[name], "\x00"))
	f, err := mem.Open(filepath.Join("d", name), vfs.ReadWrite)
	must(t, err)
	must(t, f.Truncate(int64(length)))
	must(t, f.Close())
}

// TestReaderMeetsANewerIndex has a reader find an INDEX that is newer than what
// it has seen of the log, and that a commit was half in: the reader sees the
// commit whole or not at all.
func TestReaderMeetsANewerIndex(t *testing.T) {
	mem := vfs.NewMem()
	writing, reading := vfstest.NewFault(mem), vfstest.NewFault(mem)
	s := openStale(t, writing)
	fillStale(t, s)
	must(t, s.Log().SaveIndex())
	once := false
	writing.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Path: "INDEX.new", Do: func(vfstest.Event) {
		if !once {
			once = true
			deleteStale(t, s, true)
		}
	}})
	reading.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpOpen}, Path: "INDEX", Do: func(vfstest.Event) {
		if !once {
			must(t, s.Log().SaveIndex())
		}
	}})
	r, err := db.Open("d", seam.With(&db.Options{ReadOnly: true}, seam.Options{FS: reading}))
	must(t, err)
	if n := r.Len(); !once || n != staleKeys && n != 0 {
		t.Errorf("the reader sees %d of %d keys that one commit deleted", n, staleKeys)
	}
	nothingFound(t, r)
	must(t, r.Close())
	must(t, s.Close())
}

// TestFilesOfAnotherHistory has INDEX or TTL of a copy of the directory that has
// gone on apart: with commits of the same lengths and sequence numbers, whose
// last bytes are the same.
func TestFilesOfAnotherHistory(t *testing.T) {
	later := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	for _, name := range []string{bitcask.IndexFile, bitcask.TTLName} {
		mem := vfs.NewMem()
		s := openStale(t, mem)
		must(t, s.String("first").Put([]byte("v")))
		must(t, s.Close())
		other := mem.Clone()
		goApart := func(mem *vfs.Mem, key string) {
			s := openStale(t, mem)
			must(t, s.String(key).Put([]byte("v"), db.ExpireAt(later)))
			for i := range 20 {
				must(t, s.String(fmt.Sprint("same", i)).Put([]byte("the same in both")))
			}
			must(t, s.Log().SaveIndex())
			must(t, s.Close())
		}
		goApart(mem, "a")
		goApart(other, "b")
		takeFile(t, mem, other, name)
		s = openStale(t, mem)
		if name == bitcask.IndexFile && s.Log().Recovery().Indexed {
			t.Error("the INDEX of another history is used")
		}
		if d, err := s.Key("a").Deadline(); err != nil || !d.Equal(later) {
			t.Errorf("%s of another history: the deadline of a is %v, %v", name, d, err)
		}
		if _, there := filesIn(t, mem)[name]; there && name == bitcask.TTLName {
			t.Error("the TTL file of another history stays")
		}
		nothingFound(t, s)
		must(t, s.Close())
	}
}

// TestMergeIsAheadOfACopy copies the unsealed segment, then lets a merge drop records that have
// died since, and copies the rest.
func TestMergeIsAheadOfACopy(t *testing.T) {
	for _, more := range []bool{false, true} { // written after the merge
		mem := vfs.NewMem()
		s := openStale(t, mem)
		must(t, s.String("k").Put([]byte("v")))
		must(t, s.Log().Rotate())
		must(t, s.String("other").Put([]byte("v")))
		before := mem.Clone()
		_, err := s.Key("k").Delete()
		must(t, err)
		_, err = s.Log().Rewrite(t.Context(), []uint32{1}, bitcask.RewriteOptions{})
		must(t, err)
		if more {
			must(t, s.String("more").Put([]byte("v")))
		}
		copied := mem.Clone()
		must(t, s.Close())
		takeFile(t, copied, before, "000000002.data")
		files := filesIn(t, copied)
		_, err = db.Open("d", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1}, seam.Options{FS: copied}))
		if damage := (*bitcask.CorruptError)(nil); !errors.As(err, &damage) || damage.File != "000000002.data" {
			t.Errorf("k is neither there nor deleted: %v", err)
		}
		if !maps.Equal(files, filesIn(t, copied)) {
			t.Error("refused, and changed")
		}
	}
}

// TestTTLOfAnotherHistory restores a store from a copy but for the TTL file,
// which is of what came after the copy. Deadlines given from then on stay.
func TestTTLOfAnotherHistory(t *testing.T) {
	for _, closed := range []bool{true, false} { // the copy
		for _, kill := range []bool{true, false} {
			for _, puts := range []int{5, 10, 20} { // fewer than, as many as, more than the other history has
				for _, first := range []bool{true, false} { // the deadline comes before the puts: then the last bytes are the same
					t.Run(fmt.Sprintf("closed %v, killed %v, deadline first %v, %d puts", closed, kill, first, puts), func(t *testing.T) {
						restoreWithoutTTL(t, closed, kill, first, puts)
					})
				}
			}
		}
	}
}

func restoreWithoutTTL(t *testing.T, closed, kill, first bool, puts int) {
	later := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	mem := vfs.NewMem()
	s := openStale(t, mem)
	for _, key := range []string{"a", "b"} {
		must(t, s.String(key).Put([]byte("v")))
	}
	if closed {
		must(t, s.Close())
	}
	restored := mem.Clone()
	if closed {
		s = openStale(t, mem)
	}
	expire := func(s *db.Store, key string) {
		ok, err := s.Key(key).ExpireAt(later)
		must(t, err)
		if !ok {
			t.Fatal("no deadline")
		}
	}
	write := func(s *db.Store, key string, puts int) {
		if first {
			expire(s, key)
		}
		for i := range puts {
			must(t, s.String(fmt.Sprint("new", i)).Put([]byte("a value that is the same, however the store went on")))
		}
		if !first {
			expire(s, key)
		}
	}
	write(s, "a", 10)
	must(t, s.Close())
	takeFile(t, restored, mem, bitcask.TTLName)

	s = openStale(t, restored)
	write(s, "b", puts)
	must(t, s.Sync())
	again := restored.Clone()
	must(t, s.Close())
	if !kill {
		again = restored
	}
	s = openStale(t, again)
	if d, err := s.Key("a").Deadline(); err != nil || !d.IsZero() {
		t.Errorf("a has the deadline of another history: %v %v", d, err)
	}
	if d, err := s.Key("b").Deadline(); err != nil || !d.Equal(later) {
		t.Errorf("b has lost its deadline: %v %v", d, err)
	}
	nothingFound(t, s)
	must(t, s.Close())
}
