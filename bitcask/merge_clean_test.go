package bitcask_test

import (
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// TestTombstonesGo: a tombstone goes once every older segment has been merged since, though what these hold lives on; one that is
// newer than such a merge stays, for it may hide what that has copied.
func TestTombstonesGo(t *testing.T) {
	opened := func(s *bitcask.Store, err error) *bitcask.Store {
		must(t, err)
		return s
	}
	mem := vfs.NewMem()
	o := seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: mem, NoIndex: true})
	s := opened(bitcask.Open("d", o))
	remove := func(key string) {
		_, err := s.Delete(key)
		must(t, err)
	}
	put(t, s, "kept", "v")
	put(t, s, "deleted early", "v")
	put(t, s, "deleted late", "v")
	must(t, s.Rotate())
	remove("deleted early")
	put(t, s, "other", "v")
	must(t, s.Rotate())
	merge := func(id uint32, copied int) (out uint32) {
		t.Helper()
		r, err := s.Rewrite(t.Context(), []uint32{id}, bitcask.RewriteOptions{})
		must(t, err)
		if int(r.Copied) != copied || len(r.Out) != 1 {
			t.Fatalf("%+v, want %d copied", r, copied)
		}
		return r.Out[0]
	}
	ids := sealed(s)
	second := merge(ids[1], 2) // the tombstone hides something in the first
	merge(ids[0], 2)           // without what it hides
	for _, sg := range s.Segments() {
		if sg.ID == second && sg.Hiding != 0 {
			t.Errorf("%+v: its tombstone hides nothing any more", sg)
		}
	}
	merge(second, 1)

	remove("deleted late")
	must(t, s.Rotate())
	for _, sg := range s.Segments() {
		if sg.Sealed && sg.MinSeq == s.Sequence() { // the tombstone alone
			merge(sg.ID, 1)
		}
	}

	killed := mem.Clone()
	must(t, s.Close())
	s = opened(bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: killed, NoIndex: true})))
	defer func() { must(t, s.Close()) }()
	want(t, s, "kept", "v")
	want(t, s, "other", "v")
	wantNone(t, s, "deleted early")
	wantNone(t, s, "deleted late")
	check(t, s)
}

// TestMergeWaitsForSystemRecords: a system record becomes known, or unknown, after its commit has come to the log. A merge must not
// begin in between: it would take a record for live at a sequence at which it had been deleted.
func TestMergeWaitsForSystemRecords(t *testing.T) {
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{FS: vfs.NewMem(), NoIndex: true}))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	put(t, s, "key", "v")
	must(t, s.Rotate())
	tx, err := s.Begin(true)
	must(t, err)
	must(t, tx.PutSystem("name", []byte("value")))
	merged := make(chan error)
	go func() { merged <- rewriteAll(s) }()
	select {
	case <-merged:
		t.Fatal("a merge beside a transaction that puts a system record")
	case <-time.After(50 * time.Millisecond):
	}
	tx.End()
	must(t, <-merged)
}
