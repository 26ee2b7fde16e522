package bitcask_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// changing are the operations that change files.
var changing = []vfstest.Op{
	vfstest.OpCreate, vfstest.OpWrite, vfstest.OpTruncate, vfstest.OpSync, vfstest.OpSyncDir, vfstest.OpRename, vfstest.OpRemove, vfstest.OpLink, vfstest.OpRenameDir, vfstest.OpRemoveDir,
}

// writers are calls that write to a store, or note something of it.
var writers = map[string]func(s *bitcask.Store) error{
	"put": func(s *bitcask.Store) error { return s.Put("new", []byte("value")) },
	"delete": func(s *bitcask.Store) error {
		_, err := s.Delete("key0")
		return err
	},
	"batch": func(s *bitcask.Store) error {
		b := s.NewBatch()
		b.Put("new", nil)
		b.Delete("key0")
		return b.Commit()
	},
	"begin": func(s *bitcask.Store) error { return endOf(s.Begin(true, "key0", "key1")) },
	"begin all": func(s *bitcask.Store) error {
		return endOf(s.BeginAll(true))
	},
	"begin stripe": func(s *bitcask.Store) error { return endOf(s.BeginStripe(true, 7)) },
	"history": func(s *bitcask.Store) error {
		_, err := s.BeginHistory()
		return err
	},
	"counts": func(s *bitcask.Store) error {
		_, err := s.FixCounts(context.Background())
		return err
	},
	"merge": func(s *bitcask.Store) error {
		var ids []uint32
		for _, sg := range s.Segments() {
			if sg.Sealed {
				ids = append(ids, sg.ID)
			}
		}
		_, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{})
		return err
	},
	"rotate":     func(s *bitcask.Store) error { return s.Rotate() },
	"save INDEX": func(s *bitcask.Store) error { return s.SaveIndex() },
	"mark": func(s *bitcask.Store) error {
		_, err := s.Mark()
		return err
	},
	"close": func(s *bitcask.Store) error { return s.Close() },
}

func endOf(tx *bitcask.Tx, err error) error {
	if err == nil {
		tx.End()
	}
	return err
}

// TestNothingIsWrittenBeforeItBegins: a store whose INDEX is loaded later changes no file while it is only read; the
// first write, of whatever kind, is preceded by what Open does otherwise, in the same order; and if that fails nothing
// is written.
func TestNothingIsWrittenBeforeItBegins(t *testing.T) {
	noHints := func(o *bitcask.Options) { seam.Of(o).NoHints = true } // which the background writes
	files := lazyStore(t)
	opening := vfstest.NewRecorder(files.Clone(), changing...)
	eager := openLazy(t, opening, seam.LoadAtOpen, noHints)
	begins := strings.Split(strings.TrimSpace(opening.Trace()), "\n")
	whole := lazyContents(t, eager)
	closeStore(t, eager)
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			mem := files.Clone()
			rec := vfstest.NewRecorder(mem, changing...)
			s := openLazy(t, rec, seam.LoadOnDemand, noHints)
			if got := lazyContents(t, s); got != whole {
				t.Fatal(differing(got, whole))
			}
			if trace := rec.Trace(); trace != "" {
				t.Fatalf("changed while it was read:\n%s", trace)
			}
			mustBe(t, write(s))
			trace := strings.Split(strings.TrimSpace(rec.Trace()), "\n")
			if len(trace) < len(begins) || !slices.Equal(trace[:len(begins)], begins) {
				t.Errorf("began with\n%s\nand not with\n%s", strings.Join(trace, "\n"), strings.Join(begins, "\n"))
			}
			closeStore(t, s)

			mem = files.Clone()
			rec = vfstest.NewRecorder(mem, changing...)
			fault := vfstest.NewFault(rec)
			s = openLazy(t, fault, seam.LoadOnDemand, noHints)
			fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Path: "MANIFEST", Err: syscall.EIO})
			if err := write(s); !errors.Is(err, syscall.EIO) {
				t.Errorf("the manifest was not synced: %v", err)
			}
			if name != "close" {
				if err := s.Put("other", nil); !errors.Is(err, bitcask.ErrFailed) {
					t.Errorf("a write after that: %v", err)
				}
				if got := lazyContents(t, s); got != whole {
					t.Error(differing(got, whole))
				}
			}
			if err := s.Close(); name != "close" && !errors.Is(err, bitcask.ErrFailed) {
				t.Errorf("close: %v", err)
			}
			for _, e := range rec.Events() {
				if !strings.HasSuffix(e.Name, "MANIFEST") {
					t.Errorf("%v", e)
				}
			}
			if leaks := mem.Leaks(); len(leaks) > 0 {
				t.Errorf("left open: %v", leaks)
			}
			again := openLazy(t, mem, seam.LoadAtOpen)
			if got := lazyContents(t, again); got != whole {
				t.Error(differing(got, whole))
			}
			closeStore(t, again)
		})
	}
}

// TestPowerCutsWhileItBegins cuts the power after every operation of a store that is opened, read, written to and
// closed: what was seen is there, and so is what was acknowledged.
func TestPowerCutsWhileItBegins(t *testing.T) {
	rng := chance.Rand(t)
	files := untimedStore(t)
	flipped := files.Clone()
	flipSections(t, flipped, rng)
	for _, mem := range []*vfs.Mem{files, flipped} { // the second rebuilds every stripe, and removes the INDEX
		before, err := crash.ReadState(mem, "d")
		mustBe(t, err)
		rec := vfstest.NewRecorder(mem.Clone())
		s := openLazy(t, rec, seam.LoadOnDemand, func(o *bitcask.Options) { o.Sync = bitcask.SyncAlways })
		whole := lazyContents(t, s)
		mustBe(t, s.Put("new", []byte("value")))
		rec.Mark("written")
		written := lazyContents(t, s)
		closeStore(t, s)
		cutEverywhere(t, rec.Events(), before, rng, func(promised bool, state crash.State) {
			mem, err := state.Mem("d")
			mustBe(t, err)
			s := openLazy(t, mem, []seam.Load{seam.LoadAtOpen, seam.LoadOnDemand}[rng.IntN(2)])
			if got := lazyContents(t, s); got != written && (promised || got != whole) {
				t.Fatal(differing(got, whole))
			}
			closeStore(t, s)
		})
	}
}

// cutEverywhere calls fn with what a power cut after each of some events may leave. promised says whether it was after
// a mark.
func cutEverywhere(t *testing.T, events []vfstest.Event, before crash.State, rng *rand.Rand, fn func(promised bool, state crash.State)) {
	t.Helper()
	random, share := 4, 1.0
	if testing.Short() {
		random, share = 1, 0.1
	}
	disk := crash.NewDisk("d", before)
	promised := false
	for i, e := range events {
		fresh := disk.Apply(i, e)
		promised = promised || e.Op == vfstest.OpMark
		if fresh == 0 && e.Op != vfstest.OpMark {
			continue
		}
		for keep := range crash.Choices(disk.Units(), fresh, random, rng) {
			if rng.Float64() < share {
				fn(promised, disk.Cut(crash.Weak, keep))
			}
		}
	}
}

// TestBeginOnAFullDisk: a store that finds no space for its opening serves reads, refuses writes with ErrNoSpace, and
// takes them when there is space again.
func TestBeginOnAFullDisk(t *testing.T) {
	files := lazyStore(t)
	for name, after := range map[string]func(t *testing.T, mem *vfs.Mem, s *bitcask.Store){
		"space again": func(t *testing.T, mem *vfs.Mem, s *bitcask.Store) {
			mem.SetLimit(0, 0)
			put(t, s, "new", "value")
			want(t, s, "new", "value")
		},
		"closed": func(*testing.T, *vfs.Mem, *bitcask.Store) {},
	} {
		t.Run(name, func(t *testing.T) {
			mem := files.Clone()
			s := openLazy(t, mem, seam.LoadOnDemand)
			mem.SetLimit(mem.Used(1), 1)
			if err := s.Put("new", []byte("value")); !errors.Is(err, bitcask.ErrNoSpace) {
				t.Errorf("put on a full disk: %v", err)
			}
			want(t, s, "key0", "value 0 of 0")
			after(t, mem, s)
			closeStore(t, s)
			mem.SetLimit(0, 0)
			s = openLazy(t, mem, seam.LoadAtOpen)
			want(t, s, "key0", "value 0 of 0")
			check(t, s)
			closeStore(t, s)
		})
	}
}

// TestBeginIsTriedAgain: what fails for lack of space or of descriptors before the first write fails that write alone.
func TestBeginIsTriedAgain(t *testing.T) {
	files := lazyStore(t)
	for _, op := range []vfstest.Op{vfstest.OpWrite, vfstest.OpTruncate} {
		for _, cause := range []error{syscall.ENOSPC, syscall.EMFILE} {
			fault := vfstest.NewFault(files.Clone())
			s := openLazy(t, fault, seam.LoadOnDemand)
			fault.Inject(vfstest.Rule{Ops: []vfstest.Op{op}, Err: cause})
			if err := s.Put("new", nil); !errors.Is(err, cause) || errors.Is(err, bitcask.ErrFailed) {
				t.Errorf("%v fails with %v: put: %v", op, cause, err)
			}
			put(t, s, "new", "value")
			want(t, s, "new", "value")
			closeStore(t, s)
		}
	}
}

// TestBeginSparesAFullDisk: while the disk stays full, writes that come one after another do not each sync what the
// opening begins with, and a second after there is space they succeed.
func TestBeginSparesAFullDisk(t *testing.T) {
	files := lazyStore(t)
	synctest.Test(t, func(t *testing.T) {
		mem := files.Clone()
		mem.SetLimit(mem.Used(1), 1)
		fault, syncs := vfstest.NewFault(mem), 0
		fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Sticky: true, Do: func(vfstest.Event) {
			syncs++
			time.Sleep(20 * time.Millisecond) // of the bubble
		}})
		s := openLazy(t, fault, seam.LoadOnDemand)
		began, writes := time.Now(), 0
		for ; time.Since(began) < time.Minute; writes++ {
			if err := s.Put("new", []byte("value")); !errors.Is(err, bitcask.ErrNoSpace) || errors.Is(err, bitcask.ErrFailed) {
				t.Fatalf("put on a full disk: %v", err)
			}
			time.Sleep(time.Millisecond)
		}
		if syncs == 0 || syncs > 400 {
			t.Errorf("%d syncs for %d writes in a minute", syncs, writes)
		}
		fault.Heal() // the bubble's clock stands while Close waits for a lock whose holder sleeps
		mem.SetLimit(0, 0)
		time.Sleep(time.Second)
		put(t, s, "new", "value")
		want(t, s, "new", "value")
		closeStore(t, s)
	})
}

// TestNothingBeginsAfterClose: a store that was closed on a full disk before its first write is closed for whatever
// would write.
func TestNothingBeginsAfterClose(t *testing.T) {
	mem := lazyStore(t).Clone()
	s := openLazy(t, mem, seam.LoadOnDemand)
	mem.SetLimit(mem.Used(1), 1)
	if err := s.Put("new", nil); !errors.Is(err, bitcask.ErrNoSpace) || s.Stats().State == bitcask.StateOK {
		t.Errorf("put: %v, state %v", err, s.Stats().State)
	}
	closeStore(t, s)
	if err := s.Rotate(); !errors.Is(err, bitcask.ErrClosed) {
		t.Errorf("rotate: %v", err)
	}
	if err := s.Put("new", nil); !errors.Is(err, bitcask.ErrClosed) {
		t.Errorf("put: %v", err)
	}
}

// TestBeginFindsItsLockGone: a store that another process has taken, while it was only read, writes nothing.
func TestBeginFindsItsLockGone(t *testing.T) {
	mem := lazyStore(t)
	rec := vfstest.NewRecorder(mem, changing...)
	s := openLazy(t, rec, seam.LoadOnDemand)
	mustBe(t, mem.Remove("d/LOCK"))
	other := openLazy(t, mem, seam.LoadAtOpen)
	put(t, other, "theirs", "value")
	if err := s.Put("ours", nil); !errors.Is(err, bitcask.ErrLockLost) {
		t.Errorf("put without the lock: %v", err)
	}
	if trace := rec.Trace(); trace != "" {
		t.Errorf("written:\n%s", trace)
	}
	if err := s.Close(); !errors.Is(err, bitcask.ErrLockLost) {
		t.Errorf("close: %v", err)
	}
	want(t, other, "theirs", "value")
	closeStore(t, other)
}

// TestBeginIsEarlyWhereItMustBe: a store that was not closed, or that notes its history, is made ready for writes by
// Open.
func TestBeginIsEarlyWhereItMustBe(t *testing.T) {
	files := lazyStore(t)
	for name, change := range map[string]func(s *bitcask.Store, mem *vfs.Mem) *vfs.Mem{
		"killed": func(s *bitcask.Store, mem *vfs.Mem) *vfs.Mem {
			put(t, s, "new", "value")
			return mem.Clone()
		},
		"history": func(s *bitcask.Store, mem *vfs.Mem) *vfs.Mem {
			_, err := s.BeginHistory()
			mustBe(t, err)
			closeStore(t, s)
			return mem.Clone()
		},
	} {
		t.Run(name, func(t *testing.T) {
			mem := files.Clone()
			s := openLazy(t, mem, seam.LoadOnDemand)
			after := change(s, mem)
			rec := vfstest.NewRecorder(after, changing...)
			again := openLazy(t, rec, seam.LoadOnDemand)
			if rec.Trace() == "" {
				t.Error("Open changed nothing")
			}
			closeStore(t, again)
			mustBe(t, s.Close())
		})
	}
	s := openLazy(t, files.Clone(), seam.LoadOnDemand, func(o *bitcask.Options) { o.SegmentSize = 1 << 20 }) // far from its end
	tx, ok, err := s.TryBegin(true, "key0")
	if ok || err != nil {
		t.Fatal(fmt.Sprint(tx, ok, err), "before it has begun")
	}
	put(t, s, "key0", "new")
	if tx, ok, err = s.TryBegin(true, "key0"); !ok || err != nil {
		t.Fatal(ok, err, "after it has begun")
	}
	tx.End()
	closeStore(t, s)
}
