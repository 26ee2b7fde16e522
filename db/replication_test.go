package db_test

import (
	"sync/atomic"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestReplicationIsKept: what is kept is there after a restart, once, and only if nothing was written in between.
func TestReplicationIsKept(t *testing.T) {
	dir := t.TempDir()
	open := func() *db.Store { return ok[*db.Store](t)(db.Open(dir, nil)) }
	take := func(s *db.Store, want string) {
		t.Helper()
		equal(t, "kept", string(ok[[]byte](t)(serverside.DB.TakeReplication(s, func() error { return nil }))), want)
	}
	keep := func(s *db.Store) {
		t.Helper()
		if err := serverside.DB.KeepReplication(s, func() []byte { return []byte("here") }); err != nil {
			t.Fatal(err)
		}
	}
	closeStore := func(s *db.Store) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open()
	take(s, "")
	ok[db.SetResult](t)(s.String("k").Set([]byte("v")))
	keep(s)
	closeStore(s)

	s = open()
	take(s, "here")
	take(s, "")
	closeStore(s)
	s = open()
	take(s, "") // the log could end like that after a power cut, with writes lost
	keep(s)
	ok[db.SetResult](t)(s.String("k").Set([]byte("w")))
	closeStore(s)
	s = open()
	take(s, "")
	keep(s)
	closeStore(s)

	s = open() // by the program, while its server begins
	begun := func() error { return s.String("k").Put([]byte("x")) }
	equal(t, "kept", string(ok[[]byte](t)(serverside.DB.TakeReplication(s, begun))), "")
	keep(s)
	closeStore(s)

	s = open() // by somebody else
	ok[db.SetResult](t)(s.String("k").Set([]byte("x")))
	closeStore(s)
	s = open()
	take(s, "")
	closeStore(s)
}

// TestReplicationIsTakenDurably: no power cut brings back what was taken: the stream may have gone on since.
func TestReplicationIsTakenDurably(t *testing.T) {
	fs := vfstest.NewFault(vfs.NewMem())
	open := func() *db.Store {
		return ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{Sync: bitcask.SyncNone, NoMerge: true}, seam.Options{FS: fs})))
	}
	s := open()
	if err := serverside.DB.KeepReplication(s, func() []byte { return []byte("here") }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer s.Close()
	var syncs atomic.Int64
	fs.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: "*.data", Sticky: true, Do: func(vfstest.Event) { syncs.Add(1) }})
	equal(t, "kept", string(ok[[]byte](t)(serverside.DB.TakeReplication(s, func() error { syncs.Store(0); return nil }))), "here")
	if syncs.Load() == 0 {
		t.Error("nothing was synced")
	}
}
