package db_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/merge"
	"github.com/stavedb/stave/ttl"
)

// deadlineStore is a store in memory that is closed and opened again.
type deadlineStore struct {
	*db.Store
	t       *testing.T
	fs      *vfs.Mem
	noIndex bool
}

// withDeadlines runs a test with and without the INDEX, which knows that it is
// newer than an old TTL file: without it only the log can tell.
func withDeadlines(t *testing.T, test func(t *testing.T, d *deadlineStore)) {
	for _, noIndex := range []bool{false, true} {
		t.Run(fmt.Sprintf("no index %v", noIndex), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &deadlineStore{t: t, fs: vfs.NewMem(), noIndex: noIndex}
				d.open()
				test(t, d)
				must(t, d.Close())
			})
		})
	}
}

func (d *deadlineStore) open() {
	s, err := db.Open("d", seam.With(&db.Options{}, seam.Options{FS: d.fs, NoIndex: d.noIndex}))
	must(d.t, err)
	d.Store = s
}

// ttlFile is the bytes of the TTL file.
func (d *deadlineStore) ttlFile() []byte {
	f, err := d.fs.Open(filepath.Join("d", bitcask.TTLName), vfs.ReadOnly)
	must(d.t, err)
	n, err := f.Size()
	must(d.t, err)
	b := make([]byte, n)
	_, err = f.ReadAt(b, 0)
	must(d.t, err)
	must(d.t, f.Close())
	return b
}

func (d *deadlineStore) putTTLFile(b []byte) {
	name := filepath.Join("d", bitcask.TTLName)
	must(d.t, d.fs.Remove(name))
	f, err := d.fs.Open(name, vfs.Create)
	must(d.t, err)
	_, err = f.WriteAt(b, 0)
	must(d.t, err)
	must(d.t, f.Close())
}

func (d *deadlineStore) mergeAll() {
	_, err := d.Merge(context.Background(), merge.RunOptions{All: true})
	must(d.t, err)
}

// TestOldTTLFileAfterMerge puts back a TTL file from before a key was deleted.
// The merge has taken the key's tombstone, so nothing in the log says that the
// deadline is gone; a new key of that name must not inherit it.
func TestOldTTLFileAfterMerge(t *testing.T) {
	withDeadlines(t, func(t *testing.T, s *deadlineStore) {
		must(t, s.String("other").Put([]byte("v"))) // else nothing of the namespace would be left
		must(t, s.String("k").Put([]byte("v"), db.TTL(time.Hour)))
		must(t, s.Close())
		old := s.ttlFile()
		s.open()
		_, err := s.Key("k").Delete()
		must(t, err)
		s.mergeAll()
		must(t, s.Close())
		s.putTTLFile(old)
		s.open()
		_, err = s.Hash("k").Put("f", nil)
		must(t, err)
		at, err := s.Key("k").Deadline()
		must(t, err)
		if !at.IsZero() {
			t.Errorf("a new key expires at %v", at)
		}
	})
}

// TestOldTTLFileAfterFlushes puts back a TTL file from before two flushes. Of
// the first nothing is left in the log: its deadlines must not stay for ever.
func TestOldTTLFileAfterFlushes(t *testing.T) {
	withDeadlines(t, func(t *testing.T, s *deadlineStore) {
		for _, key := range []string{"a", "b", "c"} {
			must(t, s.String(key).Put([]byte("v"), db.TTL(time.Second)))
		}
		must(t, s.Close())
		old := s.ttlFile()
		s.open()
		must(t, s.Flush())
		must(t, s.String("a").Put([]byte("v")))
		s.mergeAll()
		must(t, s.Flush())
		must(t, s.String("a").Put([]byte("v")))
		s.mergeAll()
		must(t, s.Close())
		s.putTTLFile(old)
		s.open()
		time.Sleep(time.Minute)
		equal(t, "keys", s.Len(), 1)
		// The rest of the index goes into the next checkpoint.
		must(t, s.Close())
		if now := s.ttlFile(); len(now) >= len(old) {
			t.Errorf("the TTL file has %d bytes and no deadlines, with 3 it had %d", len(now), len(old))
		}
	})
}

// TestNameOfTTLFile is the same to package ttl, which writes the file, and to the log, which knows its directory.
func TestNameOfTTLFile(t *testing.T) {
	if ttl.FileName != bitcask.TTLName {
		t.Errorf("%q and %q", ttl.FileName, bitcask.TTLName)
	}
}
