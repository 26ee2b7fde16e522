package bitcask_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// openMem opens a store in memory; it is not closed at the end.
func openMem(t *testing.T, mem *vfs.Mem, o bitcask.Options) *bitcask.Store {
	t.Helper()
	seam.Of(&o).FS = mem
	s, err := bitcask.Open("d", &o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t *testing.T, s *bitcask.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantReplayed(t *testing.T, s *bitcask.Store, indexed bool, replayed uint64) {
	t.Helper()
	if r := s.Recovery(); r.Indexed != indexed || r.Replayed != replayed {
		t.Errorf("indexed %v, %d records replayed; want %v, %d", r.Indexed, r.Replayed, indexed, replayed)
	}
}

func mergeSealed(t *testing.T, s *bitcask.Store) {
	t.Helper()
	var ids []uint32
	for _, sg := range s.Segments() {
		if sg.Sealed {
			ids = append(ids, sg.ID)
		}
	}
	if _, err := s.Rewrite(context.Background(), ids, bitcask.RewriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestIndexSparesReplay follows one store through closing, being killed, and merges.
func TestIndexSparesReplay(t *testing.T) {
	mem := vfs.NewMem()
	o := bitcask.Options{SegmentSize: 4 << 10}
	s := openMem(t, mem, o)
	for i := range 1000 {
		put(t, s, fmt.Sprint("key", i%700), fmt.Sprint("value", i))
	}
	closeStore(t, s)

	s = openMem(t, mem, o)
	wantReplayed(t, s, true, 0)
	check(t, s)
	put(t, s, "key0", "after")
	atOnce := mem.Clone() // before what has been written may be sealed, and has a hint
	for i := range 99 {
		put(t, s, fmt.Sprint("key", i+1), "after")
	}
	killed := mem.Clone()
	mergeSealed(t, s)
	merged := mem.Clone()
	closeStore(t, s)

	s = openMem(t, atOnce, o)
	wantReplayed(t, s, true, 1)
	check(t, s)
	want(t, s, "key0", "after")
	want(t, s, "key1", "value701")
	closeStore(t, s)

	s = openMem(t, killed, o)
	wantReplayed(t, s, true, 100)
	check(t, s)
	want(t, s, "key99", "after")
	want(t, s, "key100", "value800")
	closeStore(t, s)

	s = openMem(t, merged, o) // the INDEX refers to segments that are gone
	if s.Recovery().Indexed {
		t.Error("used an INDEX of segments that are gone")
	}
	check(t, s)
	want(t, s, "key100", "value800")
	closeStore(t, s)

	for _, mem := range []*vfs.Mem{mem, killed, merged} { // each Close has written one
		s = openMem(t, mem, o)
		if !s.Recovery().Indexed {
			t.Error("no INDEX after closing")
		}
		check(t, s)
		closeStore(t, s)
	}
	seam.Of(&o).NoIndex = true
	s = openMem(t, mem, o)
	if s.Recovery().Indexed || s.Recovery().Replayed == 0 {
		t.Error("used an INDEX in spite of NoIndex")
	}
	if leaks := mem.Leaks(); len(leaks) == 0 {
		t.Error("an open store with nothing open")
	}
	closeStore(t, s)
	if leaks := mem.Leaks(); len(leaks) > 0 {
		t.Errorf("left open: %v", leaks)
	}
}

// TestIndexBesideWriters writes one INDEX after another alongside writers, and takes copies of the
// files as a kill would leave them: in each every key has the value of some moment between the last
// write acknowledged before the copy and the last one begun before its end, and the index in memory
// is the one that the log gives.
func TestIndexBesideWriters(t *testing.T) {
	mem := vfs.NewMem()
	o := bitcask.Options{SegmentSize: 32 << 10, Sync: bitcask.SyncNone}
	s := openMem(t, mem, o)
	const writers, keys = 4, 300
	var begun, done [writers * keys]atomic.Int64
	stop := make(chan struct{})
	var allowed atomic.Int64 // writes, or what there is to verify grows faster than it is verified
	allowed.Store(3000)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for n := int64(1); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if allowed.Add(-1) < 0 {
					time.Sleep(time.Millisecond)
					continue
				}
				k := w*keys + rng.IntN(keys)
				begun[k].Store(n)
				if err := s.Put(fmt.Sprint("key", k), strconv.AppendInt(nil, n, 10)); err != nil {
					t.Error(err)
					return
				}
				done[k].Store(n)
			}
		})
	}
	rounds, used := 30, 0
	if testing.Short() {
		rounds = 8
	}
	for range rounds {
		allowed.Store(1000)
		if err := s.SaveIndex(); err != nil {
			t.Fatal(err)
		}
		var low, high [writers * keys]int64
		for k := range done {
			low[k] = done[k].Load()
		}
		copied := mem.Clone()
		for k := range begun {
			high[k] = begun[k].Load()
		}
		if verifyCopy(t, copied, o, low[:], high[:]) {
			used++
		}
	}
	close(stop)
	wg.Wait()
	closeStore(t, s)
	if used == 0 {
		t.Error("no copy was opened with its INDEX")
	}
}

// verifyCopy opens a copy of the files with the INDEX and without.
func verifyCopy(t *testing.T, mem *vfs.Mem, o bitcask.Options, low, high []int64) (used bool) {
	t.Helper()
	if err := mem.Remove(filepath.Join("d", "LOCK")); err != nil {
		t.Fatal(err)
	}
	o.ReadOnly = true
	s := openMem(t, mem, o)
	seam.Of(&o).NoIndex = true
	log := openMem(t, mem, o)
	defer closeStore(t, s)
	defer closeStore(t, log)
	for k := range low {
		key := fmt.Sprint("key", k)
		got, err := s.Get(key)
		if err != nil && low[k] > 0 {
			t.Fatalf("%s: %v", key, err)
		}
		if n, _ := strconv.ParseInt(string(got), 10, 64); n < low[k] || n > high[k] {
			t.Fatalf("%s is %d, want %d to %d", key, n, low[k], high[k])
		}
		if want, _ := log.Get(key); string(want) != string(got) {
			t.Fatalf("%s is %s, the log says %s", key, got, want)
		}
	}
	check(t, s)
	check(t, log) // compares it with the INDEX
	for i, sg := range s.Segments() {
		if want := log.Segments()[i]; sg != want {
			t.Fatalf("segment %v, the log says %v", sg, want)
		}
	}
	return s.Recovery().Indexed
}

// TestIndexCheck finds damage that no Open has read.
func TestIndexCheck(t *testing.T) {
	mem := vfs.NewMem()
	s := openMem(t, mem, bitcask.Options{})
	for i := range 100 {
		put(t, s, fmt.Sprint("key", i), "value")
	}
	closeStore(t, s)
	for _, offset := range []int64{0, 100, 1000} {
		damaged := mem.Clone()
		f, err := damaged.Open(filepath.Join("d", bitcask.IndexFile), vfs.ReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, offset); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{b[0] ^ 0xa5}, offset); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		s := openMem(t, damaged, bitcask.Options{ReadOnly: true})
		findings := 0
		result, err := s.Check(context.Background(), func(f bitcask.Finding) {
			if f.Rule != "I8" || f.File != bitcask.IndexFile {
				t.Errorf("damage at %d: %v", offset, f)
			}
			findings++
		})
		if err != nil || findings != 1 || result.Index || s.Recovery().Indexed {
			t.Errorf("damage at %d: %d findings, %+v, %v", offset, findings, result, err)
		}
		want(t, s, "key7", "value")
		closeStore(t, s)
	}
}
