package bitcask_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// longValue is n bytes that depend on seed.
func longValue(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestLongValues: values that are not copied into the transaction, alone, among others in a batch,
// and alongside other writers, read as they were written, now and after opening again.
func TestLongValues(t *testing.T) {
	dir := t.TempDir()
	o := seam.With(&bitcask.Options{SegmentSize: 8 << 20}, seam.Options{NoIndex: true, NoHints: true})
	s, err := bitcask.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]byte{
		"alone": longValue(1<<20, 1), "b0": []byte("short"), "b1": longValue(1<<20+1, 2), "b2": longValue(3<<20, 3),
		"b3": []byte("short too"), "last": longValue(1<<20-1, 4), "segment of its own": longValue(9<<20, 5),
	}
	if err := s.Put("alone", values["alone"]); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("segment of its own", values["segment of its own"]); err != nil {
		t.Fatal(err)
	}
	b := s.NewBatch()
	for _, key := range []string{"b0", "b1", "b2", "b3", "last"} {
		b.Put(key, values[key])
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 5 {
				key, n := fmt.Sprint(w, "-", i), 10
				if i%2 == w%2 {
					n = 1<<20 + w
				}
				if err := s.Put(key, longValue(n, uint64(w*i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for w := range 8 {
		for i := range 5 {
			n := 10
			if i%2 == w%2 {
				n = 1<<20 + w
			}
			values[fmt.Sprint(w, "-", i)] = longValue(n, uint64(w*i))
		}
	}
	for range 2 {
		for key, value := range values {
			if got, err := s.Get(key); err != nil || !bytes.Equal(got, value) {
				t.Errorf("%s: %d bytes, %v; want %d", key, len(got), err, len(value))
			}
		}
		check(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = bitcask.Open(dir, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLongValueIsNotCopied: putting one takes no memory in proportion.
func TestLongValueIsNotCopied(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	value := longValue(32<<20, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := s.Put("k", value); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes allocated to put %d", n, len(value))
	}
}

// TestLongValueTakenBack: a transaction reads a long value that it has put, and can roll it back,
// with what came after.
func TestLongValueTakenBack(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	tx, err := s.BeginAll(true)
	if err != nil {
		t.Fatal(err)
	}
	tx.Borrow()
	read := func(key string) []byte {
		slot, _, err := tx.Find(0, key)
		if err != nil || slot.Type != keydir.String {
			t.Fatal(key, slot, err)
		}
		value, err := tx.Value(nil, 0, key, "", keydir.String, slot.Loc)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	first, second := longValue(1<<20, 1), longValue(2<<20, 2)
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(tx.PutString(0, "a", first))
	must(tx.PutString(0, "b", []byte("short")))
	point := tx.Savepoint()
	must(tx.PutString(0, "a", second))
	must(tx.PutString(0, "c", second))
	if !bytes.Equal(read("a"), second) || !bytes.Equal(read("c"), second) {
		t.Error("a long value reads otherwise within its transaction")
	}
	tx.RollbackTo(point)
	must(tx.PutString(0, "d", []byte("short")))
	if !bytes.Equal(read("a"), first) {
		t.Error("a long value reads otherwise after a rollback")
	}
	_, err = tx.Commit()
	must(err)
	tx.End()
	for key, value := range map[string][]byte{"a": first, "b": []byte("short"), "d": []byte("short")} {
		if got, err := s.Get(key); err != nil || !bytes.Equal(got, value) {
			t.Errorf("%s: %d bytes, %v; want %d", key, len(got), err, len(value))
		}
	}
	wantNone(t, s, "c")
	check(t, s)
}

// TestTornLongValue: a long value that was written in part is not there, and
// neither is one that did not fit the disk.
func TestTornLongValue(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfstest.NewFault(mem)
	s := open(t, "d", seam.With(&bitcask.Options{SyncEvery: neverIdle}, seam.Options{FS: fault, NoMapping: true, NoIndex: true}))
	put(t, s, "k", "short")
	fault.Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpWrite}, Skip: 1, Err: syscall.ENOSPC, Partial: 1000})
	if err := s.Put("k", longValue(1<<20, 1)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	want(t, s, "k", "short")
	if err := s.Put("l", longValue(1<<20, 2)); err != nil {
		t.Fatal(err)
	}
	check(t, s)
	for _, cut := range []int64{1, 1000, 1 << 20} {
		torn := open(t, "d", seam.With(&bitcask.Options{}, seam.Options{FS: copyCut(t, mem, "000000001.data", cut), NoMapping: true, NoIndex: true}))
		want(t, torn, "k", "short")
		wantNone(t, torn, "l")
		check(t, torn)
	}
}
