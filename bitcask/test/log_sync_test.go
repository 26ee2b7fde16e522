package bitcask_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// slowly delays every operation of a kind on segments.
func slowly(op vfstest.Op, d time.Duration) vfstest.Rule {
	return vfstest.Rule{Ops: []vfstest.Op{op}, Path: "*.data", Sticky: true, Do: func(vfstest.Event) { time.Sleep(d) }}
}

// TestOneSyncServesAllWaiting: writers that wait for a disk share its syncs.
func TestOneSyncServesAllWaiting(t *testing.T) {
	fault := vfstest.NewFault(vfs.NewMem())
	s := open(t, "d", seam.With(&bitcask.Options{Sync: bitcask.SyncAlways}, seam.Options{FS: fault}))
	fault.Inject(slowly(vfstest.OpSync, 20*time.Millisecond))
	const writers, puts = 32, 8
	before := s.Stats().Syncs
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range puts {
				if err := s.Put(fmt.Sprint(w, "-", i), []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := s.Stats().Syncs - before; n > writers*puts/4 {
		t.Errorf("%d syncs for %d puts", n, writers*puts)
	}
	if at := s.Sequence(); at != writers*puts {
		t.Errorf("sequence %d after %d puts", at, writers*puts)
	}
}

// TestFailedSyncFailsEveryWaiter: none of the writers that share a failed sync is acknowledged.
func TestFailedSyncFailsEveryWaiter(t *testing.T) {
	fault := vfstest.NewFault(vfs.NewMem())
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{Sync: bitcask.SyncAlways}, seam.Options{FS: fault}))
	if err != nil {
		t.Fatal(err)
	}
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Err: syscall.EIO, Do: func(vfstest.Event) { time.Sleep(20 * time.Millisecond) }})
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			if err := s.Put(fmt.Sprint(w), []byte("x")); !errors.Is(err, bitcask.ErrFailed) {
				t.Errorf("put %d: %v", w, err)
			}
		})
	}
	wg.Wait()
	if err := s.Close(); !errors.Is(err, bitcask.ErrFailed) {
		t.Errorf("close: %v", err)
	}
}

// TestFullDiskBesideWriters: when a write does not fit, the frames queued after it fail too, every
// writer gets the right answer, and the log continues without a gap in offsets or sequence numbers.
func TestFullDiskBesideWriters(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	s := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: fault, NoMapping: true}))
	for i := range 5 {
		fault.Inject(vfstest.Rule{
			Ops: []vfstest.Op{vfstest.OpWrite}, Skip: 10 * i, Err: syscall.ENOSPC, Partial: 13,
			Do: func(vfstest.Event) { time.Sleep(5 * time.Millisecond) },
		})
	}
	const writers, puts = 16, 20
	var done atomic.Uint64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			key, last := fmt.Sprint(w), ""
			for i := range puts {
				switch err := s.Put(key, fmt.Append(nil, i)); {
				case err == nil:
					last = fmt.Sprint(i)
					done.Add(1)
				case !errors.Is(err, syscall.ENOSPC):
					t.Error(err)
				}
			}
			want(t, s, key, last)
		})
	}
	wg.Wait()
	if at := s.Sequence(); at != done.Load() {
		t.Errorf("sequence %d after %d puts that worked", at, done.Load())
	}
	check(t, s)
}

// TestNewStoreKeepsItsName: what a power cut leaves of a store in new directories, once a write has been acknowledged,
// is where it was.
func TestNewStoreKeepsItsName(t *testing.T) {
	rec := vfstest.NewRecorder(vfs.NewMem())
	dir := filepath.Join("new", "also new", "d")
	s := open(t, dir, seam.With(&bitcask.Options{Sync: bitcask.SyncAlways}, seam.Options{FS: rec}))
	put(t, s, "k", "v")
	disk := crash.NewDisk("other", nil)
	for i, e := range rec.Events() {
		disk.Apply(i, e)
	}
	left, err := disk.Cut(crash.Weak, crash.Choice{}).Mem("other")
	if err != nil {
		t.Fatal(err)
	}
	want(t, open(t, dir, seam.With(&bitcask.Options{}, seam.Options{FS: left})), "k", "v")
}

// TestNewStoreSyncsItsName: the names on the way to a new store are on disk before its manifest is, also if a process
// that was killed had made the directories and not synced them. A store that is there costs no such sync.
func TestNewStoreSyncsItsName(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("a/d"); err != nil {
		t.Fatal(err)
	}
	for _, isNew := range []bool{true, false} {
		rec := vfstest.NewRecorder(mem)
		s, err := bitcask.Open("a/d", seam.With(&bitcask.Options{}, seam.Options{FS: rec}))
		if err != nil {
			t.Fatal(err)
		}
		synced := map[string]bool{}
		for _, e := range rec.Events() {
			if e.Op == vfstest.OpSyncDir {
				synced[e.Name] = true
			}
			if e.Op == vfstest.OpRename && isNew && !(synced["a"] && synced["."]) {
				t.Errorf("%v, but of the names only %v", e, synced)
			}
		}
		if !isNew && (synced["a"] || synced["."]) {
			t.Errorf("an old store synced %v", synced)
		}
		if isNew && !synced["a"] {
			t.Error("a new store has not synced its name")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
