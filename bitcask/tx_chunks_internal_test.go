package bitcask

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask/internal/format"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

func openChunks(t *testing.T, fsys vfs.FS) *Store {
	t.Helper()
	s, err := Open("d", &Options{Sync: SyncNone, seam: seam.Options{FS: fsys, NoIndex: true, NoHints: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// commitTo commits what fn does to key.
func commitTo(t *testing.T, s *Store, key string, fn func(tx *Tx)) {
	t.Helper()
	tx, err := s.Begin(true, key)
	if err != nil {
		t.Fatal(err)
	}
	tx.Borrow()
	fn(tx)
	if _, err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	tx.End()
}

func putChunks(t *testing.T, tx *Tx, key string, value []byte, size int) keydir.Collection {
	t.Helper()
	coll, err := tx.PutChunks(0, key, value, size)
	if err != nil {
		t.Fatal(err)
	}
	return coll
}

// readChunks returns the chunks of a key, one after the other, and their number.
func readChunks(t *testing.T, tx *Tx, key string) (value []byte, n int) {
	t.Helper()
	slot, coll, err := tx.Find(0, key)
	if err != nil || slot.Type != keydir.Chunks {
		t.Fatalf("%q holds %v: %v", key, slot.Type, err)
	}
	head, tail := coll.Bounds()
	for i := head; i <= tail; i++ {
		if loc, ok := coll.LocAt(i); ok {
			if value, err = tx.Value(value, 0, key, format.IndexName(i), keydir.Chunks, loc); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	return value, n
}

func findings(t *testing.T, s *Store) (list []string) {
	t.Helper()
	if _, err := s.Check(context.Background(), func(f Finding) { list = append(list, f.String()) }); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestChunksApart: the chunks of a long value are written from the caller's memory, alongside a
// short one and a whole one, and read as they were put.
func TestChunksApart(t *testing.T) {
	mem := vfs.NewMem()
	s := openChunks(t, mem)
	long := make([]byte, 3<<20+17)
	rng := chance.Rand(t)
	for i := range long {
		long[i] = byte(rng.Uint32())
	}
	short := long[:1000]
	for round, size := range []int{8 << 10, 300 << 10} { // gathered for one write, and written alone
		key := fmt.Sprint("k", round)
		commitTo(t, s, key, func(tx *Tx) {
			putChunks(t, tx, key, short, size)
			if _, err := tx.Drop(0, key); err != nil {
				t.Fatal(err)
			}
			putChunks(t, tx, key, long, size)
			if value, _ := readChunks(t, tx, key); !bytes.Equal(value, long) {
				t.Error("chunks read otherwise within their transaction")
			}
			point := tx.Savepoint()
			if err := tx.PutString(0, key, long); err != nil {
				t.Fatal(err)
			}
			tx.RollbackTo(point)
		})
	}
	for range 2 {
		for round, want := range []int{385, 11} {
			key := fmt.Sprint("k", round)
			tx, err := s.Begin(false, key)
			if err != nil {
				t.Fatal(err)
			}
			if value, n := readChunks(t, tx, key); !bytes.Equal(value, long) || n != want {
				t.Errorf("%s: %d bytes in %d chunks, want %d in %d", key, len(value), n, len(long), want)
			}
			tx.End()
		}
		if list := findings(t, s); len(list) > 0 {
			t.Error(list)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openChunks(t, mem)
	}
}

// TestChunksAreNotCopied: to put a long value takes no memory in proportion.
func TestChunksAreNotCopied(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	value := make([]byte, 32<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	commitTo(t, s, "k", func(tx *Tx) { putChunks(t, tx, "k", value, 8<<10) })
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes allocated to put %d", n, len(value))
	}
}

// TestCheckRecountsChunks: Check names a string whose meta record does not say how
// long it is and how many chunks it has.
func TestCheckRecountsChunks(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(coll keydir.Collection)
		want   string
	}{
		"last chunk lost":  {func(coll keydir.Collection) { coll.DeleteAt(keydir.ChunkIndex(16, 6)) }, `says "100 7", the keydir has 6 elements, counted "96 6"`},
		"inner chunk lost": {func(coll keydir.Collection) { coll.DeleteAt(keydir.ChunkIndex(16, 3)) }, `says "100 7", the keydir has 6 elements, counted "100 6"`},
		"long chunk": {func(coll keydir.Collection) {
			loc, _ := coll.LocAt(keydir.ChunkIndex(16, 0))
			coll.DeleteAt(keydir.ChunkIndex(16, 0))
			coll.PutAt(keydir.ChunkIndex(16, 7), loc)
		}, "expects another record"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openChunks(t, vfs.NewMem())
			commitTo(t, s, "k", func(tx *Tx) { putChunks(t, tx, "k", make([]byte, 100), 16) })
			if list := findings(t, s); len(list) > 0 {
				t.Fatal(list)
			}
			h := s.man.Seed.Hash("k")
			coll, _ := s.spaces.Of(0).Dir.FindCollection(h, "k")
			c.damage(coll)
			list := findings(t, s)
			if !slices.ContainsFunc(list, func(f string) bool { return strings.Contains(f, c.want) && strings.Contains(f, `key "k"`) }) {
				t.Errorf("found %q, want %q", list, c.want)
			}
		})
	}
}

// TestChunkOfAnotherSize: a log in which a string is cut again, without a tombstone
// between, has the chunks of the last cut only.
func TestChunkOfAnotherSize(t *testing.T) {
	mem := vfs.NewMem()
	s := openChunks(t, mem)
	commitTo(t, s, "k", func(tx *Tx) { putChunks(t, tx, "k", make([]byte, 100), 16) })
	commitTo(t, s, "k", func(tx *Tx) {
		_, coll, err := tx.Find(0, "k")
		if err == nil {
			err = tx.PutIndex(0, "k", coll, keydir.ChunkIndex(32, 0), []byte("another"))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openChunks(t, mem)
	tx, err := s.Begin(false, "k")
	if err != nil {
		t.Fatal(err)
	}
	defer tx.End()
	if value, n := readChunks(t, tx, "k"); string(value) != "another" || n != 1 {
		t.Errorf("%d chunks: %q", n, value)
	}
}
