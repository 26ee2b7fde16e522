package bitcask_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/leak"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// workload does a fixed series of operations and returns the acknowledged values, and the keys
// whose last operation failed: either state is right for them.
func workload(o *bitcask.Options) (acked map[string]string, unsure map[string]bool, failed error) {
	acked, unsure = map[string]string{}, map[string]bool{}
	note := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	s, err := bitcask.Open("d", o)
	if err != nil {
		return acked, unsure, err
	}
	synced := func(err error) error { // a commit is acknowledged once it is on disk
		if err == nil && o.Sync != bitcask.SyncAlways {
			return s.Sync()
		}
		return err
	}
	put := func(key, value string) {
		if err := synced(s.Put(key, []byte(value))); err != nil {
			note(err)
			unsure[key] = true
			return
		}
		acked[key] = value
		delete(unsure, key)
	}
	for i := range 12 {
		put(fmt.Sprint("k", i%5), fmt.Sprintf("value %d with some length to fill segments", i))
	}
	_, err = s.Delete("k1")
	if err = synced(err); err != nil {
		note(err)
		unsure["k1"] = true
	} else {
		delete(acked, "k1")
		delete(unsure, "k1")
	}
	b := s.NewBatch()
	b.Put("b1", []byte("batch"))
	b.Put("b2", []byte("batch"))
	if err := synced(b.Commit()); err != nil {
		note(err)
		unsure["b1"], unsure["b2"] = true, true
	} else {
		acked["b1"], acked["b2"] = "batch", "batch"
	}
	var ids []uint32
	for _, sg := range s.Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	if _, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{}); err != nil {
		note(err)
	}
	put("last", "one")
	for key := range acked {
		if _, err := s.Get(key); err != nil && !unsure[key] {
			note(err)
		}
	}
	note(s.Close())
	return acked, unsure, failed
}

// warnings counts what a store logs.
type warnings struct{ slog.Handler }

var warned atomic.Int64

func (warnings) Enabled(context.Context, slog.Level) bool { return true }

func (warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		warned.Add(1)
	}
	return nil
}

func faultOptions(fs vfs.FS, hints bool) *bitcask.Options {
	return seam.With(&bitcask.Options{Sync: bitcask.SyncAlways, SegmentSize: 400, Logger: slog.New(warnings{slog.DiscardHandler})},
		seam.Options{FS: fs, NoMapping: true, NoHints: !hints, NoIndex: !hints})
}

// copiedFaults is faultOptions of a store that copies its commits, where each is followed by a sync.
func copiedFaults(fs vfs.FS, hints bool) *bitcask.Options {
	o := faultOptions(fs, hints)
	o.Sync, seam.Of(o).Copies, seam.Of(o).CopyStep = bitcask.SyncNone, seam.CopiesOn, 2<<10
	return o
}

// TestEveryOperationFails fails each operation of a workload in turn, in each
// way, once and from then on: the failure is never silent, no handle leaks,
// and on the healed file system every acknowledged write is there. Hints and
// the INDEX only save time, so with them a failure may pass without an error.
func TestEveryOperationFails(t *testing.T) {
	share := longTests.Start(t, 3)
	for _, hints := range []bool{false, true} {
		t.Run(fmt.Sprint("hints ", hints), func(t *testing.T) {
			everyOperationFails(t, func(fs vfs.FS) *bitcask.Options { return faultOptions(fs, hints) }, !hints, share.Part(t, 20))
		})
	}
	// Where something cannot be copied it is written, and that may be the end of it.
	t.Run("copied", func(t *testing.T) {
		everyOperationFails(t, func(fs vfs.FS) *bitcask.Options { return copiedFaults(fs, false) }, false, share.Part(t, 20))
	})
}

// everyOperationFails fails each operation; with noticed, there is a warning at least.
func everyOperationFails(t *testing.T, options func(vfs.FS) *bitcask.Options, noticed bool, operations *budget.Part) {
	defer operations.End()
	count := vfstest.NewFault(vfs.NewMem())
	if _, _, err := workload(options(count)); err != nil {
		t.Fatal(err)
	}
	causes := []error{syscall.EIO, syscall.ENOSPC, syscall.EMFILE}
	runs := 0
	for n := range count.Ops() {
		if !operations.Take(n, count.Ops()) {
			continue
		}
		for _, cause := range causes {
			for _, sticky := range []bool{false, true} {
				for _, partial := range []int{0, 7} {
					name := fmt.Sprintf("operation %d, %v, sticky %v, partial %d", n, cause, sticky, partial)
					mem := vfs.NewMem()
					fault := vfstest.NewFault(mem, vfstest.Rule{Skip: n, Sticky: sticky, Err: cause, Partial: partial})
					warned.Store(0)
					acked, unsure, err := workload(options(fault))
					runs++
					// A step that is repeated without a waiter is logged.
					if err == nil && fault.Failed() > 0 && noticed && warned.Load() == 0 {
						t.Errorf("%s: nobody noticed", name)
					}
					if open := mem.Leaks(); len(open) > 0 {
						t.Errorf("%s: left open: %v", name, open)
					}
					healed(t, name, mem, acked, unsure)
				}
			}
		}
	}
	t.Logf("%d operations, %d runs", count.Ops(), runs)
}

// healed opens the store on the healed file system and compares.
func healed(t *testing.T, name string, fs vfs.FS, acked map[string]string, unsure map[string]bool) {
	t.Helper()
	s, err := bitcask.Open("d", faultOptions(fs, true))
	if err != nil {
		t.Errorf("%s: does not open again: %v", name, err)
		return
	}
	for _, key := range []string{"k0", "k1", "k2", "k3", "k4", "b1", "b2", "last"} {
		got, err := s.Get(key)
		if unsure[key] && (err == nil || errors.Is(err, bitcask.ErrNotFound)) {
			continue
		}
		if value, ok := acked[key]; ok && (err != nil || string(got) != value) {
			t.Errorf("%s: acknowledged %s = %q is %q, %v", name, key, value, got, err)
		} else if !ok && !errors.Is(err, bitcask.ErrNotFound) {
			t.Errorf("%s: %s should not be there: %q, %v", name, key, got, err)
		}
	}
	if _, err := s.Check(context.Background(), func(f bitcask.Finding) { t.Errorf("%s: check: %v", name, f) }); err != nil {
		t.Errorf("%s: check: %v", name, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: close: %v", name, err)
	}
}

// TestFailedSyncIsNeverRepeated: after a failed sync the store refuses writes,
// serves reads, and does not sync that file again.
func TestFailedSyncIsNeverRepeated(t *testing.T) {
	fault := vfstest.NewFault(vfs.NewMem())
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{Sync: bitcask.SyncAlways}, seam.Options{FS: fault}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put("a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Err: syscall.EIO})
	if err := s.Put("b", []byte("2")); !errors.Is(err, bitcask.ErrFailed) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("put over a failed sync: %v", err)
	}
	syncs := 0
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: "*.data", Sticky: true, Do: func(vfstest.Event) { syncs++ }})
	if err := s.Put("c", []byte("3")); !errors.Is(err, bitcask.ErrFailed) {
		t.Fatalf("put into a failed store: %v", err)
	}
	if err := s.Sync(); !errors.Is(err, bitcask.ErrFailed) {
		t.Fatalf("sync of a failed store: %v", err)
	}
	want(t, s, "a", "1")
	if err := s.Close(); !errors.Is(err, bitcask.ErrFailed) {
		t.Fatalf("close of a failed store: %v", err)
	}
	if syncs > 0 {
		t.Errorf("%d syncs after the failed one", syncs)
	}
}

// TestDiskFullGoesOn: a write that does not fit fails alone; reads go on, and
// writes do when there is room again.
func TestDiskFullGoesOn(t *testing.T) {
	fault := vfstest.NewFault(vfs.NewMem())
	s := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: fault, NoMapping: true}))
	put(t, s, "a", "1")
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Err: syscall.ENOSPC, Partial: 11})
	if err := s.Put("b", []byte("2")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	wantNone(t, s, "b")
	want(t, s, "a", "1")
	put(t, s, "b", "3")
	want(t, s, "b", "3")
	check(t, s)
}

// TestFailedWriteLeavesNothing: a put that failed is not there after a kill,
// even if the disk had taken all of its bytes before it said no.
func TestFailedWriteLeavesNothing(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	s := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: fault, NoMapping: true}))
	put(t, s, "a", "1")
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Err: syscall.ENOSPC, Applied: true})
	if err := s.Put("b", []byte("2")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	killed := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: copyCut(t, mem, "000000001.data", 0), NoMapping: true}))
	want(t, killed, "a", "1")
	wantNone(t, killed, "b")
	check(t, killed)
}

// TestFullDiskPassesAnywhere fills the disk, or takes the descriptors away, at
// each operation of rotations and merges that can meet that: reads go on
// meanwhile, and once there is room again writes do, in the same store.
func TestFullDiskPassesAnywhere(t *testing.T) {
	full := []vfstest.Op{vfstest.OpCreate, vfstest.OpWrite}
	for n := 0; ; n++ {
		name := fmt.Sprint("from operation ", n)
		mem := vfs.NewMem()
		fault := vfstest.NewFault(mem)
		s := open(t, "d", faultOptions(fault, false))
		for _, cause := range []error{syscall.ENOSPC, syscall.EMFILE} {
			fault.Inject(vfstest.Rule{Ops: full, Skip: n, Sticky: true, Err: cause, Partial: 5})
			acked := fillUntil(t, name+", "+cause.Error(), s, cause)
			for key, value := range acked {
				want(t, s, key, value)
			}
			reached := fault.Failed() > 0
			fault.Heal()
			if !reached {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			for i := range 12 {
				put(t, s, fmt.Sprint("k", i%5), fmt.Sprint(name, " again ", i))
			}
			if err := rewriteAll(s); err != nil {
				t.Errorf("%s: %v, then a merge: %v", name, cause, err)
			}
			check(t, s)
		}
		want(t, s, "k1", name+" again 11")
		if err := s.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
		s = open(t, "d", faultOptions(mem, false))
		want(t, s, "k1", name+" again 11")
		check(t, s)
	}
}

// fillUntil writes and merges until that fails with the cause, and returns what
// has been acknowledged.
func fillUntil(t *testing.T, name string, s *bitcask.Store, cause error) map[string]string {
	t.Helper()
	acked := map[string]string{}
	for i := range 30 {
		key, value := fmt.Sprint("k", i%5), fmt.Sprintf("value %d with some length to fill segments", i)
		err := s.Put(key, []byte(value))
		if err == nil {
			acked[key] = value
			if i%10 == 9 {
				err = rewriteAll(s)
			}
		}
		if errors.Is(err, cause) {
			return acked
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return acked
}

var openEvery = flag.Int("openfiles.every", 1, "every how many operations on a real file system one fails (default: a sample)")

// TestNothingStaysOpen fails operations on a real file system, with mappings: whatever fails, while a store is opened
// too, Close leaves no descriptor and no mapping.
func TestNothingStaysOpen(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	s := open(t, made, openOptions(vfs.OS()))
	for i := range 20 {
		put(t, s, fmt.Sprint("k", i%15), fmt.Sprintf("value %d with some length to fill segments", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	every := *openEvery
	if testing.Short() {
		every *= 33
	}
	ops := leavesNothingOpen(t, "nothing fails", made)
	part := longTests.Start(t, 1, "openfiles.every").Part(t, 5)
	defer part.End()
	for n := 0; n < ops; n += every {
		if !part.Take(n, ops) {
			continue
		}
		sticky := n%2 == 0
		leavesNothingOpen(t, fmt.Sprintf("operation %d, sticky %v", n, sticky), made, vfstest.Rule{Skip: n, Sticky: sticky, Err: syscall.EIO})
	}
	t.Logf("%d operations on a real file system, every %d failed", ops, every)
}

func openOptions(fs vfs.FS) *bitcask.Options {
	o := faultOptions(fs, true)
	o.Sync, seam.Of(o).NoMapping = bitcask.SyncNone, false
	return o
}

// leavesNothingOpen uses a copy of a store, as far as it can be used, and counts the operations. What comes back is
// TestEveryOperationFails's affair.
func leavesNothingOpen(t *testing.T, name, made string, rules ...vfstest.Rule) (ops int) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
		t.Fatal(err)
	}
	fault := vfstest.NewFault(vfs.OS(), rules...)
	if s, err := bitcask.Open(dir, openOptions(fault)); err == nil {
		for i := range 20 {
			_, _ = s.Get(fmt.Sprint("k", i))
			_ = s.Put(fmt.Sprint("k", i), fmt.Appendf(nil, "value %d with some length to fill segments", i))
		}
		var ids []uint32
		for _, sg := range s.Segments() {
			if sg.Sealed {
				ids = append(ids, sg.ID)
			}
		}
		_, _ = s.Rewrite(t.Context(), ids, bitcask.RewriteOptions{})
		_ = s.Close()
	}
	if left, err := leak.OpenFiles(dir); err != nil || len(left) > 0 {
		t.Errorf("%s: left open: %q, %v", name, left, err)
	}
	return fault.Ops()
}
