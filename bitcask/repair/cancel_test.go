package repair_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/bitcask/repair"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/crash"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// A countdown is a context that ends when it has been asked so often whether it has.
type countdown struct {
	context.Context
	left atomic.Int64
}

func newCountdown(t *testing.T, n int64) *countdown {
	c := &countdown{Context: t.Context()}
	c.left.Store(n)
	return c
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// damaged makes a store of many segments of which one is damaged: one bit, or many bytes, and then another one is
// missing.
func damaged(t *testing.T, missing bool) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	written(t, mem)
	names, err := mem.List("d")
	must(t, err)
	var segments []string
	for _, name := range names {
		if strings.HasSuffix(name, ".data") {
			segments = append(segments, name)
		}
	}
	if len(segments) < 5 {
		t.Fatal(names)
	}
	if missing {
		must(t, mem.Remove("d/"+segments[1]))
	}
	f, err := mem.Open("d/"+segments[2], vfs.ReadWrite)
	must(t, err)
	hole := []byte{'v' ^ 1} // one bit of a value
	if missing {
		hole = make([]byte, 300)
	}
	_, err = f.WriteAt(hole, 1000)
	must(t, errors.Join(err, f.Close()))
	return mem
}

// A salvage that is cancelled, at whatever step, ends with the context's error; it has changed nothing of the damaged
// store, left no file open, and another one begun anew finds what it would have found.
func TestSalvageCancelled(t *testing.T) {
	store := damaged(t, true)
	before, err := crash.ReadState(store, "d")
	must(t, err)
	o := func(mem *vfs.Mem) *bitcask.Options {
		return seam.With(&bitcask.Options{SegmentSize: 8 << 10}, seam.Options{FS: mem})
	}
	mem := store.Clone()
	all := newCountdown(t, 1<<40)
	whole, err := repair.Salvage(all, "d", "new", o(mem))
	must(t, err)
	steps := 1<<40 - all.left.Load()
	if steps < 100 || len(whole.Lost) == 0 {
		t.Fatalf("asked %d times, %+v", steps, whole)
	}
	stride := int64(1)
	if testing.Short() {
		stride += steps / 100
	}
	for n := int64(0); n < steps; n += stride {
		mem := store.Clone()
		if _, err := repair.Salvage(newCountdown(t, n), "d", "new", o(mem)); !errors.Is(err, context.Canceled) {
			t.Fatalf("ended at step %d of %d: %v", n, steps, err)
		}
		if open := mem.Leaks(); len(open) > 0 {
			t.Fatalf("step %d: open files: %v", n, open)
		}
		after, err := crash.ReadState(mem, "d")
		must(t, err)
		if !maps.EqualFunc(before, after, func(a, b []byte) bool { return string(a) == string(b) }) {
			t.Fatalf("step %d: the damaged store has changed", n)
		}
		if n/stride%10 != 0 {
			continue
		}
		again, err := repair.Salvage(t.Context(), "d", "again", o(mem))
		if must(t, err); fmt.Sprint(again) != fmt.Sprint(whole) {
			t.Fatalf("step %d: the next salvage gives %+v, want %+v", n, again, whole)
		}
	}
}

// Opening and checking end with the context too, at whatever step. What a check has reported by then is what the whole
// one reports first.
func TestCheckCancelled(t *testing.T) {
	store := damaged(t, false)
	open := func(mem *vfs.Mem, until context.Context) (*bitcask.Store, error) {
		return bitcask.Open("d", seam.With(&bitcask.Options{ReadDamaged: true}, seam.Options{FS: mem, NoIndex: true, Until: until}))
	}
	all := newCountdown(t, 1<<40)
	s, err := open(store, all)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	steps := 1<<40 - all.left.Load()
	for n := range steps {
		mem := store.Clone()
		if _, err := open(mem, newCountdown(t, n)); !errors.Is(err, context.Canceled) {
			t.Fatalf("opening ended at step %d of %d: %v", n, steps, err)
		}
		if open := mem.Leaks(); len(open) > 0 {
			t.Fatalf("step %d: open files: %v", n, open)
		}
	}
	check := func(ctx context.Context) (found []bitcask.Finding, err error) {
		_, err = s.Check(ctx, func(f bitcask.Finding) { found = append(found, f) })
		return found, err
	}
	all = newCountdown(t, 1<<40)
	whole, err := check(all)
	must(t, err)
	checkSteps := 1<<40 - all.left.Load()
	if steps < 5 || checkSteps < 100 || len(whole) == 0 {
		t.Fatalf("opening asked %d times, the check %d, %d findings", steps, checkSteps, len(whole))
	}
	for n := range checkSteps {
		found, err := check(newCountdown(t, n))
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("ended at step %d of %d: %v", n, checkSteps, err)
		}
		if len(found) > len(whole) || fmt.Sprint(found) != fmt.Sprint(whole[:len(found)]) {
			t.Fatalf("step %d: found %v, want the first of %v", n, found, whole)
		}
	}
}

// One collection, which is within one stripe, is left as soon as a whole store.
func TestCheckCancelledInACollection(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d"))
	s, err := bitcask.Open("d", seam.With(&bitcask.Options{}, seam.Options{FS: mem}))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	asked := func() int64 {
		all := newCountdown(t, 1<<40)
		_, err := s.Check(all, func(f bitcask.Finding) { t.Error(f) })
		must(t, err)
		return 1<<40 - all.left.Load()
	}
	before := asked()
	tx, err := s.Begin(true, "set")
	must(t, err)
	coll, err := tx.Collection(0, "set", keydir.Set)
	must(t, err)
	for i := range 5000 {
		must(t, tx.PutElem(0, "set", coll, fmt.Sprint("member", i), nil))
	}
	_, err = tx.Commit()
	must(t, err)
	tx.End()
	steps := asked()
	if steps < before+10 {
		t.Fatalf("asked %d times without the collection, %d times with it", before, steps)
	}
	for n := range steps {
		if _, err := s.Check(newCountdown(t, n), func(f bitcask.Finding) { t.Error(f) }); !errors.Is(err, context.Canceled) {
			t.Fatalf("step %d of %d: %v", n, steps, err)
		}
	}
}
