package bitcask_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

func readOnly(o *bitcask.Options) { o.ReadOnly = true }

// TestLazyReader opens a store for reading, while its writer has it, or after the writer was killed in the midst of a
// write. Until the reader loads anything the writer merges what the reader will need, and writes an INDEX; and the
// INDEX that the reader has is damaged. The reader has what was there when it was opened, and changes nothing.
func TestLazyReader(t *testing.T) {
	rng := chance.Rand(t)
	files := untimedStore(t)
	for _, damaged := range []bool{false, true} {
		for _, alive := range []bool{false, true} {
			t.Run(fmt.Sprintf("damaged %v, writer alive %v", damaged, alive), func(t *testing.T) {
				mem := files.Clone()
				w := openLazy(t, mem, seam.LoadAtOpen, func(o *bitcask.Options) { seam.Of(o).Copies = seam.CopiesOff }) // the log ends with a commit
				fill(t, w, 0, 604, 640)
				mustBe(t, w.SaveIndex()) // nothing after it, whose stripes Open would load
				if !alive {
					put(t, w, "torn", "value")
				}
				sound := mem.Clone()
				if damaged {
					flipSections(t, mem, rng)
				}
				reader := mem
				if !alive {
					reader = mem.Clone()
					tearTail(t, w, sound)
					tearTail(t, w, reader)
				}
				eager := openLazy(t, sound, seam.LoadAtOpen, readOnly)
				whole := lazyContents(t, eager)
				closeStore(t, eager)
				rec := vfstest.NewRecorder(reader, changing...)
				r := openLazy(t, rec, seam.LoadOnDemand, readOnly)
				if bitcask.Unloaded(r) == 0 {
					t.Fatal("everything is loaded")
				}
				if alive {
					mergeSealed(t, w)
					fill(t, w, 0, 640, 660)
					mustBe(t, w.Rotate())
					mergeSealed(t, w)
					mustBe(t, w.SaveIndex())
				}
				if got := lazyContents(t, r); got != whole {
					t.Error(differing(got, whole))
				}
				closeStore(t, r)
				if trace := rec.Trace(); trace != "" {
					t.Errorf("a reader wrote:\n%s", trace)
				}
				closeStore(t, w)
			})
		}
	}
}

// tearTail leaves a part of the last commit at the end of the log.
func tearTail(t *testing.T, s *bitcask.Store, mem *vfs.Mem) {
	t.Helper()
	segments := s.Segments()
	name := filepath.Join("d", segments[len(segments)-1].File)
	for _, sg := range segments {
		if !sg.Sealed && sg.Records > 0 {
			name = filepath.Join("d", sg.File)
		}
	}
	f, err := mem.Open(name, vfs.ReadWrite)
	mustBe(t, err)
	size, err := f.Size()
	mustBe(t, err)
	mustBe(t, f.Truncate(size-3))
	mustBe(t, f.Close())
}

// TestLazyIndexIsTruncated: another program makes the INDEX shorter, or writes over it, after Open has mapped it. What
// is gone is rebuilt.
func TestLazyIndexIsTruncated(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("everything is loaded at Open")
	}
	for name, harm := range map[string]func(path string) error{
		"truncated":   func(path string) error { return os.Truncate(path, 100) },
		"emptied":     func(path string) error { return os.Truncate(path, 0) },
		"overwritten": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("other", 50_000)), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := func(load seam.Load) *bitcask.Options {
				return seam.With(&bitcask.Options{Sync: bitcask.SyncNone, SegmentSize: 16 << 10}, seam.Options{Load: load})
			}
			s := open(t, dir, o(seam.LoadAtOpen))
			fill(t, s, 0, 0, 3)
			fill(t, s, 0, 4, 600)
			whole := ""
			closeStore(t, s)
			s = open(t, dir, o(seam.LoadAtOpen))
			whole = lazyContents(t, s)
			closeStore(t, s)
			s = open(t, dir, o(seam.LoadOnDemand))
			mustBe(t, harm(filepath.Join(dir, bitcask.IndexFile)))
			if got := lazyContents(t, s); got != whole {
				t.Error(differing(got, whole))
			}
			closeStore(t, s)
			s = open(t, dir, o(seam.LoadAtOpen))
			if got := lazyContents(t, s); got != whole {
				t.Error(differing(got, whole))
			}
			closeStore(t, s)
		})
	}
}

// TestLazyBesideClaims: long transactions that release their stripes now and then, on stripes that are loaded
// meanwhile, in which damage is found. None is seen in part, and whatever is about all keys waits for them.
func TestLazyBesideClaims(t *testing.T) {
	rng := chance.Rand(t)
	files := untimedStore(t)
	for round := range 6 {
		mem := files.Clone()
		if round%2 == 1 {
			flipSections(t, mem, rng)
		}
		s := openLazy(t, mem, seam.LoadOnDemand, func(o *bitcask.Options) { seam.Of(o).YieldEvery = 1 })
		const pairs = 12
		var wait sync.WaitGroup
		for g := range 2 {
			wait.Go(func() {
				for i := range pairs {
					if err := putTogether(s, fmt.Sprint(g, "+", i), 20); err != nil {
						t.Error(err)
					}
				}
			})
			wait.Go(func() {
				for range pairs {
					tx, err := s.BeginHold()
					if err != nil {
						t.Error(err)
						return
					}
					tx.End()
					if err := seesWhole(s, 20); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wait.Wait()
		mustBe(t, seesWhole(s, 20))
		if _, err := s.Get("key0"); err != nil {
			t.Error(err)
		}
		closeStore(t, s)
	}
}

// putTogether puts one value under n keys, in one transaction that yields after each.
func putTogether(s *bitcask.Store, value string, n int) error {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("together", i)
	}
	tx, err := s.Begin(true, keys...)
	if err != nil {
		return err
	}
	defer tx.End()
	for _, key := range keys {
		if err := tx.PutString(0, key, []byte(value)); err != nil {
			return err
		}
		tx.Yield()
	}
	_, err = tx.Commit()
	return err
}

// seesWhole reads n keys that are put together, in a transaction on everything.
func seesWhole(s *bitcask.Store, n int) error {
	tx, err := s.BeginAll(false)
	if err != nil {
		return err
	}
	defer tx.End()
	values := map[string]int{}
	for i := range n {
		key := fmt.Sprint("together", i)
		value, err := getIn(tx, key)
		if err != nil {
			return err
		}
		values[value]++
	}
	if len(values) > 1 {
		return errors.New(fmt.Sprint("seen in part: ", values))
	}
	return nil
}

func getIn(tx *bitcask.Tx, key string) (string, error) {
	slot, _, err := tx.Find(0, key)
	if err != nil || slot.Type == keydir.None {
		return "", err
	}
	b, err := tx.Value(nil, 0, key, "", slot.Type, slot.Loc)
	return string(b), err
}

// TestLazyFailsTwice: a stripe of which one section was loaded when the next one could not be read, and the log could
// not be read either, is loaded by a later attempt as if there had been no other: nothing is counted twice.
func TestLazyFailsTwice(t *testing.T) {
	files := lazyStore(t)
	eager := openLazy(t, files.Clone(), seam.LoadAtOpen)
	whole := lazyContents(t, eager)
	figures := func(s *bitcask.Store) string {
		return fmt.Sprint(s.Len(0), s.Len(1), s.Deadlines(0), s.Deadlines(1), s.Stats().Keys, s.Stats().Deadlines, s.Stats().LiveBytes)
	}
	closeStore(t, eager)
	fails := errors.New("disk fails")
	for failures := 1; failures <= 3; failures++ {
		for reads := range 6 { // that succeed before all others fail
			fault := vfstest.NewFault(files.Clone())
			s := openLazy(t, fault, seam.LoadOnDemand, func(o *bitcask.Options) { seam.Of(o).NoMapping = true })
			failed := 0
			for i := range 900 { // all stripes
				for range failures {
					fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpRead}, Err: fails, Skip: reads, Sticky: true})
					if _, err := s.Has(fmt.Sprint("key", i)); err != nil {
						failed++
					}
					fault.Heal()
				}
			}
			if failed == 0 && reads < 3 {
				t.Errorf("nothing failed after %d reads", reads)
			}
			if got := lazyContents(t, s); got != whole {
				t.Fatalf("%d failures after %d reads each:\n%s", failures, reads, differing(got, whole))
			}
			again := openLazy(t, files.Clone(), seam.LoadAtOpen)
			if got, want := figures(s), figures(again); got != want {
				t.Errorf("%d failures after %d reads each: figures %s, want %s", failures, reads, got, want)
			}
			check(t, s)
			closeStore(t, again)
			closeStore(t, s)
		}
	}
}
