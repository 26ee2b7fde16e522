package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/merge"
)

// snapshotOf makes a snapshot that is closed at the end of the test.
func snapshotOf(t *testing.T, s *db.Store) *db.Store {
	t.Helper()
	snap := ok[*db.Store](t)(s.Snapshot(t.Context()))
	t.Cleanup(func() { must(t, snap.Close()) })
	return snap
}

func TestSnapshotIsOfItsMoment(t *testing.T) {
	s := inMemory(t, nil)
	must(t, s.String("k").Put([]byte("before")))
	ok[bool](t)(s.Hash("h").Put("f", []byte("1")))
	ok[int](t)(s.List("l").PushBack([]byte("a"), []byte("b")))
	snap := snapshotOf(t, s)
	must(t, s.String("k").Put([]byte("after")))
	ok[int](t)(s.Keyspace().Delete("h", "l"))
	must(t, s.String("new").Put(nil))
	equal(t, "k", string(ok[[]byte](t)(snap.String("k").Get())), "before")
	equal(t, "f", string(ok[[]byte](t)(snap.Hash("h").Get("f"))), "1")
	equal(t, "length of l", ok[int](t)(snap.List("l").Len()), 2)
	equal(t, "keys", snap.Len(), 3)
	must(t, snap.View(func(tx *db.Tx) error {
		equal(t, "new is there", ok[bool](t)(tx.Key("new").Exists()), false)
		return nil
	}))
	equal(t, "k in the store", string(ok[[]byte](t)(s.String("k").Get())), "after")
}

func TestSnapshotRefusesWrites(t *testing.T) {
	s := inMemory(t, nil)
	must(t, s.String("k").Put([]byte("1")))
	snap := snapshotOf(t, s)
	for what, err := range map[string]error{
		"put":      snap.String("k").Put(nil),
		"update":   snap.Update(func(tx *db.Tx) error { return tx.String("k").Put(nil) }),
		"flush":    snap.Flush(),
		"merge":    first(snap.Merge(t.Context(), merge.RunOptions{All: true})),
		"snapshot": first(snap.Snapshot(t.Context())),
	} {
		if !errors.Is(err, db.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSnapshotClockStands: expired keys and fields are hidden, the others stay, and a store whose cycle deletes them
// all changes nothing of that.
func TestSnapshotClockStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inMemory(t, &db.Options{ExpireEvery: time.Millisecond})
		const soon = 80 * time.Millisecond
		must(t, s.String("gone").Put(nil, db.TTL(time.Millisecond)))
		must(t, s.String("soon").Put([]byte("1"), db.TTL(soon)))
		ok[bool](t)(s.Hash("h").Put("stays", nil))
		ok[bool](t)(s.Hash("h").Put("soon", nil))
		must(t, first(s.Hash("h").ExpireFields(soon, []string{"soon"})))
		time.Sleep(5 * time.Millisecond)
		snap := snapshotOf(t, s)
		left := ok[time.Duration](t)(snap.Key("soon").TTL())
		time.Sleep(2 * soon)
		equal(t, "gone is there", ok[bool](t)(snap.Key("gone").Exists()), false)
		equal(t, "soon is there", ok[bool](t)(snap.Key("soon").Exists()), true)
		equal(t, "what is left", ok[time.Duration](t)(snap.Key("soon").TTL()), left)
		equal(t, "fields", ok[int](t)(snap.Hash("h").Len()), 2)
		equal(t, "fields in the store", ok[int](t)(s.Hash("h").Len()), 1)
		equal(t, "soon is in the store", ok[bool](t)(s.Key("soon").Exists()), false)
	})
}

// TestSnapshotOutlivesItsStore, and the other way round, also on a disk.
func TestSnapshotOutlivesItsStore(t *testing.T) {
	dir := t.TempDir()
	s := ok[*db.Store](t)(db.Open(dir, &db.Options{SegmentSize: 4 << 10, NoMerge: true}))
	for i := range 200 {
		must(t, s.String(fmt.Sprint(i)).Put(fmt.Appendf(nil, "first %d", i)))
	}
	snap := ok[*db.Store](t)(s.Snapshot(t.Context()))
	early := ok[*db.Store](t)(s.Snapshot(t.Context()))
	must(t, early.Close())
	must(t, early.Close())
	for i := range 200 {
		must(t, s.String(fmt.Sprint(i)).Put(fmt.Appendf(nil, "second %d", i)))
	}
	must(t, mergeEverything(s))
	must(t, s.Close())

	s = ok[*db.Store](t)(db.Open(dir, &db.Options{SegmentSize: 4 << 10, NoMerge: true}))
	must(t, s.Keyspace().Put(db.Pair{Key: "7", Value: []byte("third")}))
	must(t, mergeEverything(s))
	for i := range 200 {
		equal(t, "in the snapshot", string(ok[[]byte](t)(snap.String(fmt.Sprint(i)).Get())), fmt.Sprintf("first %d", i))
	}
	must(t, snap.Close())
	for i := range 200 {
		if i != 7 {
			equal(t, "in the store", string(ok[[]byte](t)(s.String(fmt.Sprint(i)).Get())), fmt.Sprintf("second %d", i))
		}
	}
	ok[bitcask.CheckResult](t)(s.Check(t.Context(), func(f bitcask.Finding) { t.Error(f) }))
	must(t, s.Close())
	if _, err := snap.String("7").Get(); !errors.Is(err, db.ErrClosed) {
		t.Errorf("a closed snapshot: %v", err)
	}
}

func TestSnapshotErrors(t *testing.T) {
	s := ok[*db.Store](t)(db.OpenMemory(nil))
	must(t, s.View(func(*db.Tx) error {
		if _, err := s.Snapshot(t.Context()); !errors.Is(err, db.ErrNested) {
			t.Errorf("within a View: %v", err)
		}
		return nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Snapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	must(t, s.Close())
	if _, err := s.Snapshot(t.Context()); !errors.Is(err, db.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "store")
	s = ok[*db.Store](t)(db.Open(dir, nil))
	must(t, errors.Join(s.Close(), os.RemoveAll(dir)))
	if _, err := s.Snapshot(t.Context()); !errors.Is(err, db.ErrClosed) {
		t.Errorf("closed, and its directory removed: %v", err)
	}
}

// TestSnapshotBesideWriters makes and reads snapshots while a store is written, flushed, swapped, rotated and merged as
// fast as it goes. Each is a state that was, with all that had been acknowledged before, and stays so for as long as it
// is open.
func TestSnapshotBesideWriters(t *testing.T) {
	snapshots := 60
	if testing.Short() {
		snapshots = 10
	}
	s := ok[*db.Store](t)(db.Open(t.TempDir(), &db.Options{
		SegmentSize: 4 << 10, Sync: db.SyncNone, NoMerge: true, ExpireEvery: time.Millisecond,
		Merge: merge.Policy{TriggerRatio: 0.2, IncludeRatio: 0.1, SmallCount: 2},
	}))
	const writers, a, b, flushed = 2, 5, 6, 7
	for ns, side := range map[int]string{a: "a", b: "b"} {
		must(t, ok[*db.Store](t)(s.Use(ns)).String("side").Put([]byte(side)))
	}
	var acked [writers]atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			view := ok[*db.Store](t)(s.Use(flushed + w))
			for n := int64(1); ctx.Err() == nil; n++ {
				err := backupCommit(s, w, n)
				if err == nil && n%10 == 0 {
					err = errors.Join(view.String("n").Put(strconv.AppendInt(nil, n, 10)), s.Swap(a, b), view.Flush())
				}
				if err != nil {
					t.Error(err)
					return
				}
				acked[w].Store(n)
				if s.Stats().Segments > 300 {
					time.Sleep(time.Millisecond) // the merge lags on a busy machine
				}
			}
		})
	}
	wait.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if _, err := s.Merge(ctx, merge.RunOptions{All: n%4 == 0}); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
				return
			}
		}
	})
	verify := func(snap *db.Store, before [writers]int64) (held [writers]int64) {
		for w := range before {
			held[w] = verifyCommits(t, snap, "snapshot", w, before[w])
			text, err := ok[*db.Store](t)(snap.Use(flushed + w)).String("n").Get()
			if err == nil && string(text) != strconv.FormatInt(held[w], 10) || err != nil && !errors.Is(err, db.ErrNotFound) {
				t.Errorf("after commit %d, the namespace that is flushed has %q, %v", held[w], text, err)
			}
		}
		sides := string(ok[[]byte](t)(ok[*db.Store](t)(snap.Use(a)).String("side").Get())) + string(ok[[]byte](t)(ok[*db.Store](t)(snap.Use(b)).String("side").Get()))
		if sides != "ab" && sides != "ba" {
			t.Errorf("namespaces that are swapped hold %q", sides)
		}
		return held
	}
	for i := 0; i < snapshots && !t.Failed(); i++ {
		var before [writers]int64
		for w := range before {
			before[w] = acked[w].Load()
		}
		snap := ok[*db.Store](t)(s.Snapshot(ctx))
		held := verify(snap, before)
		if i%4 == 0 {
			time.Sleep(20 * time.Millisecond)
			equal(t, "what it holds later", verify(snap, before), held)
			ok[bitcask.CheckResult](t)(snap.Check(ctx, func(f bitcask.Finding) { t.Errorf("check: %v", f) }))
		}
		must(t, snap.Close())
	}
	stop()
	wait.Wait()
	must(t, s.Close())
	t.Logf("%d and %d commits, %d snapshots", acked[0].Load(), acked[1].Load(), snapshots)
}

// BenchmarkSnapshot measures what a snapshot of a million keys costs. Run it with -benchtime 3x.
func BenchmarkSnapshot(b *testing.B) {
	for _, shape := range []string{"strings", "strings with deadlines", "no INDEX"} {
		b.Run(shape, func(b *testing.B) {
			dir := b.TempDir()
			s, err := db.Open(dir, &db.Options{Sync: db.SyncNone, NoMerge: true})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			const keys = 1_000_000
			value := make([]byte, 100)
			for i := range keys {
				key := s.String(fmt.Sprintf("key:%012d", i))
				if shape == "strings with deadlines" {
					err = key.Put(value, db.TTL(time.Hour))
				} else {
					err = key.Put(value)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			if shape != "no INDEX" {
				if err := s.Log().SaveIndex(); err != nil {
					b.Fatal(err)
				}
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				snap, err := s.Snapshot(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/keys, "B/key")
				if err := snap.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
