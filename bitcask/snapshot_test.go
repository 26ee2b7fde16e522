package bitcask_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// wants compares a store with its expected content.
func wants(t *testing.T, s *bitcask.Store, values map[string]string) {
	t.Helper()
	for key, want := range values {
		if got, err := s.Get(key); err != nil || string(got) != want {
			t.Fatalf("%s = %q, %v, want %q", key, got, err, want)
		}
	}
	if n := s.Len(0); n != len(values) {
		t.Fatalf("%d keys, want %d", n, len(values))
	}
	if _, err := s.Check(t.Context(), func(f bitcask.Finding) { t.Errorf("check: %v", f) }); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotAmidst does something to the store between the moment of a snapshot and its loading: that sees nothing of
// it.
func TestSnapshotAmidst(t *testing.T) {
	for name, amidst := range map[string]func(t *testing.T, s *bitcask.Store){
		"nothing": func(*testing.T, *bitcask.Store) {},
		"a put":   func(t *testing.T, s *bitcask.Store) { must(t, s.Put("key0", []byte("later"))) },
		"a new key, in a segment that is sealed": func(t *testing.T, s *bitcask.Store) {
			must(t, errors.Join(s.Put("new", []byte("later")), s.Rotate()))
		},
		"deletes": func(t *testing.T, s *bitcask.Store) {
			for i := range backupPuts {
				_, err := s.Delete(fmt.Sprint("key", i))
				must(t, err)
			}
		},
		"a merge of all": func(t *testing.T, s *bitcask.Store) { must(t, errors.Join(s.Rotate(), rewriteAll(s))) },
		"overwriting, and a merge of all": func(t *testing.T, s *bitcask.Store) {
			overwrite(t, s, "later ")
			must(t, errors.Join(s.Rotate(), rewriteAll(s)))
			overwrite(t, s, "later still ")
		},
		"a flush": func(t *testing.T, s *bitcask.Store) {
			tx, err := s.BeginAll(true)
			must(t, err)
			_, _, err = tx.Flush(0)
			must(t, err)
			tx.End()
			must(t, errors.Join(s.Rotate(), rewriteAll(s)))
		},
		"an INDEX of a later moment": func(t *testing.T, s *bitcask.Store) {
			must(t, s.Put("key0", []byte("later")))
			must(t, s.SaveIndex())
		},
		"a merge and an INDEX of the same sequence": func(t *testing.T, s *bitcask.Store) {
			must(t, errors.Join(s.Rotate(), rewriteAll(s), s.SaveIndex()))
		},
	} {
		for _, before := range []string{"no INDEX", "an INDEX"} {
			t.Run(name+", "+before, func(t *testing.T) {
				mem := vfs.NewMem()
				s := open(t, "a", backupOptions(mem))
				values := garbage(t, s, backupPuts)
				if before == "an INDEX" {
					must(t, s.SaveIndex())
					must(t, s.Put("extra", []byte("after the INDEX")))
					values["extra"] = "after the INDEX"
				}
				snap, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{Cut: func() { amidst(t, s) }})
				must(t, err)
				wants(t, snap, values)
				overwrite(t, s, "even later ")
				must(t, errors.Join(s.Rotate(), rewriteAll(s)))
				wants(t, snap, values)
				_, err = snap.Backup(t.Context(), "copy")
				must(t, err)
				must(t, snap.Close())
				if held := bitcask.Pinned(s); len(held) > 0 {
					t.Errorf("still held: %q", held)
				}
				must(t, s.Close())
				c := open(t, "copy", backupOptions(mem))
				wants(t, c, values)
				must(t, c.Close())
				if left := mem.Leaks(); len(left) > 0 {
					t.Errorf("left open: %q", left)
				}
			})
		}
	}
}

// TestSnapshotUsesTheIndex of an earlier moment, and none of a later one.
func TestSnapshotUsesTheIndex(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", seam.With(&bitcask.Options{SegmentSize: 8 << 10}, seam.Options{FS: mem}))
	defer s.Close()
	for i := range 50 {
		must(t, s.Put(fmt.Sprint(i), nil))
	}
	indexed := func(cut func()) bool {
		snap, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{Cut: cut})
		must(t, err)
		defer snap.Close()
		return snap.Recovery().Indexed
	}
	must(t, s.SaveIndex())
	if !indexed(nil) {
		t.Error("the INDEX of this moment was not used")
	}
	must(t, s.Put("later", nil))
	if !indexed(nil) {
		t.Error("the INDEX of an earlier moment was not used")
	}
	for i := range 20 { // until the next segment is ready, which has nothing yet
		must(t, s.Put(fmt.Sprint(i), make([]byte, 60)))
	}
	must(t, s.Sync())
	for len(ready(t, mem, s)) == 0 {
		must(t, s.Put("more", nil))
		time.Sleep(time.Millisecond)
	}
	must(t, s.SaveIndex())
	if !indexed(nil) {
		t.Error("an INDEX that lists an empty segment was not used")
	}
	if indexed(func() { must(t, errors.Join(s.Put("later", nil), s.SaveIndex())) }) {
		t.Error("an INDEX of a later moment was used")
	}
}

// ready lists the files of segments that hold nothing yet.
func ready(t *testing.T, mem *vfs.Mem, s *bitcask.Store) (names []string) {
	t.Helper()
	listed := map[string]bool{}
	for _, sg := range s.Segments() {
		listed[sg.File] = true
	}
	for name := range snapshot(t, mem, "a") {
		if strings.HasSuffix(name, ".data") && !listed[name] {
			names = append(names, name)
		}
	}
	return names
}

// TestSnapshotKeepsAndReleasesFiles: the pin holds the files of the moment and nothing made since, snapshots count one
// by one, and the files of the last one go with it.
func TestSnapshotKeepsAndReleasesFiles(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	defer s.Close()
	values := garbage(t, s, backupPuts)
	first, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{})
	must(t, err)
	second, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{})
	must(t, err)
	was := snapshot(t, mem, "a")
	segments := s.Segments()
	for i := range 3 {
		overwrite(t, s, fmt.Sprintf("round %d ", i))
		must(t, errors.Join(s.Rotate(), rewriteAll(s)))
	}
	there := func() (old, young int) {
		listed := map[string]bool{}
		for _, sg := range s.Segments() {
			listed[sg.File] = true
		}
		for name := range snapshot(t, mem, "a") {
			if _, is := was[name]; strings.HasSuffix(name, ".data") && !listed[name] && is {
				old++
			} else if strings.HasSuffix(name, ".data") && !listed[name] {
				young++
			}
		}
		return old, young
	}
	before, young := there()
	if before < len(segments)-1 {
		t.Errorf("%d of %d segments are kept", before, len(segments))
	}
	if young > 1 { // the next segment, ready for use
		t.Errorf("%d segments are kept that are younger than both snapshots", young)
	}
	must(t, first.Close())
	if n, _ := there(); n != before {
		t.Errorf("the first snapshot took away %d segments of the second", before-n)
	}
	wants(t, second, values)
	must(t, second.Close())
	if n, _ := there(); n > 0 {
		t.Errorf("%d segments are left that nobody needs", n)
	}
}

// TestSnapshotOfACrash: what a snapshot keeps for a process that dies is removed by the next Open.
func TestSnapshotOfACrash(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	garbage(t, s, backupPuts)
	snap, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{})
	must(t, err)
	values := overwrite(t, s, "later ")
	must(t, errors.Join(s.Rotate(), rewriteAll(s), s.Sync()))
	if len(bitcask.Pinned(s)) == 0 {
		t.Fatal("nothing is held")
	}
	after := mem.Clone()
	must(t, errors.Join(snap.Close(), s.Close()))
	again := open(t, "a", backupOptions(after))
	defer again.Close()
	for key, want := range values {
		if got, err := again.Get(key); err != nil || string(got) != want {
			t.Errorf("%s = %q, %v, want %q", key, got, err, want)
		}
	}
	names := map[string]bool{}
	for _, sg := range again.Segments() {
		names[sg.File] = true
	}
	for name := range snapshot(t, after, "a") {
		if base := filepath.Base(name); strings.HasSuffix(base, ".data") && !names[base] && again.Recovery().Removed == nil {
			t.Errorf("%s is left", name)
		}
	}
}

// TestSnapshotWhileOthersClose: closing the store while snapshots are made and read harms none that was made.
func TestSnapshotWhileOthersClose(t *testing.T) {
	for range 20 {
		mem := vfs.NewMem()
		s := open(t, "a", backupOptions(mem))
		values := garbage(t, s, backupPuts)
		var made atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					snap, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{})
					if errors.Is(err, bitcask.ErrClosed) {
						return
					}
					if err != nil {
						t.Errorf("snapshot: %v", err)
						return
					}
					made.Add(1)
					wants(t, snap, values)
					if err := snap.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for made.Load() < 3 {
			must(t, errors.Join(s.Rotate(), rewriteAll(s)))
		}
		must(t, s.Close())
		wg.Wait()
		if left := mem.Leaks(); len(left) > 0 {
			t.Fatalf("left open: %q", left)
		}
	}
}

func TestSnapshotRefuses(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	garbage(t, s, backupPuts)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.Snapshot(ctx, bitcask.SnapshotOptions{Cut: cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while it is loaded: %v", err)
	}
	if _, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{Cut: func() { must(t, s.Close()) }}); !errors.Is(err, bitcask.ErrClosed) {
		t.Errorf("closed while it is loaded: %v", err)
	}
	func() {
		s := open(t, "a", backupOptions(mem))
		defer s.Close()
		defer func() { _ = recover() }()
		_, _ = s.Snapshot(t.Context(), bitcask.SnapshotOptions{Cut: func() { panic("cut") }})
	}()
	reader := open(t, "a", seam.With(&bitcask.Options{ReadOnly: true}, seam.Options{FS: mem}))
	if _, err := reader.Snapshot(t.Context(), bitcask.SnapshotOptions{}); !errors.Is(err, bitcask.ErrReadOnly) {
		t.Errorf("of a reader: %v", err)
	}
	must(t, reader.Close())
	if left := mem.Leaks(); len(left) > 0 {
		t.Errorf("left open: %q", left)
	}
}

// TestSnapshotAnswersAsAReader: every method answers as that of a store that was opened for reading at the same moment.
func TestSnapshotAnswersAsAReader(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	defer s.Close()
	garbage(t, s, backupPuts)
	must(t, s.Rotate()) // waits for the seal, with which the reader would count a longer segment
	if _, err := s.BeginHistory(); err != nil {
		t.Fatal(err)
	}
	snap, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{})
	must(t, err)
	defer snap.Close()
	reader := open(t, "a", seam.With(&bitcask.Options{ReadOnly: true, SegmentSize: s.SegmentSize()}, seam.Options{FS: mem}))
	defer reader.Close()
	answers := func(s *bitcask.Store) map[string]any {
		stats := s.Stats()
		stats.IndexBytes = 0 // an estimate
		history, err := s.History()
		_, markErr := s.Mark()
		_, beginErr := s.BeginHistory()
		_, rewriteErr := s.Rewrite(t.Context(), []uint32{1}, bitcask.RewriteOptions{})
		_, fixErr := s.FixCounts(t.Context())
		s.DrainDropped()
		return map[string]any{
			"Stats": stats, "History": history, "error of History": err, "error of Mark": markErr, "error of BeginHistory": beginErr,
			"error of Rewrite": rewriteErr, "error of FixCounts": fixErr, "Rotate": s.Rotate(), "SaveIndex": s.SaveIndex(), "Sync": s.Sync(),
			"Full": s.Full(), "Spare": s.Spare(), "Lacking": s.Lacking() != nil, "Inherited": s.Inherited(), "Namespaces": s.Namespaces(),
			"Appended": s.Appended(), "Sequence": s.Sequence(), "Err": s.Err(), "StoreID": s.StoreID(), "Dir": s.Dir(),
			"Deadlines": s.Deadlines(0), "Segments": len(s.Segments()), "System": string(s.System("stave:epoch")),
		}
	}
	want := answers(reader)
	for what, got := range answers(snap) {
		if got, want := fmt.Sprint(got), fmt.Sprint(want[what]); got != want {
			t.Errorf("%s is %s, of a reader %s", what, got, want)
		}
	}
}

// TestSnapshotMeetsDamage: a frame of the cut that does not verify is damage with file and offset, also at the end of
// the log, and nothing stays open or held.
func TestSnapshotMeetsDamage(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, "a", backupOptions(mem))
	values := garbage(t, s, 40)
	active := s.Segments()[len(s.Segments())-1]
	f, err := mem.Open(filepath.Join("a", active.File), vfs.ReadWrite)
	must(t, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], active.Bytes-1)
	must(t, err)
	_, err = f.WriteAt([]byte{b[0] ^ 1}, active.Bytes-1)
	must(t, err)
	_, err = s.Snapshot(t.Context(), bitcask.SnapshotOptions{})
	if bad := (*bitcask.CorruptError)(nil); !errors.As(err, &bad) || bad.File != active.File {
		t.Errorf("error is %v", err)
	}
	_, err = f.WriteAt(b[:], active.Bytes-1)
	must(t, errors.Join(err, f.Close()))
	left := mem.Leaks() // of the store alone, which opens each file once
	if len(slices.Compact(slices.Clone(left))) != len(left) {
		t.Errorf("left open: %q", left)
	}
	snap, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{})
	must(t, err)
	wants(t, snap, maps.Clone(values))
	must(t, errors.Join(snap.Close(), s.Close()))
}
