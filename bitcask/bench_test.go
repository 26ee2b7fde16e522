package bitcask_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/keydir"
)

// The benchmarks work on benchKeys keys of 16 bytes and values of 128. The
// command in bench/ measures a million, each workload in its own process.
const (
	benchKeys  = 100_000
	benchFrame = 180 // bytes of a one-put commit: 29 of headers, "string:", key and value
)

// benchStore is a store with keys 0 to n-1, which it returns in no order.
func benchStore(b *testing.B, n int) (*bitcask.Store, []string, []byte) {
	b.Helper()
	s, err := bitcask.Open(filepath.Join(b.TempDir(), "store"), &bitcask.Options{Sync: bitcask.SyncNone})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	value := make([]byte, 128)
	keys := benchKeyList(0, benchKeys)
	for from := 0; from < n; from += 1000 {
		batch := s.NewBatch()
		for _, key := range keys[from:min(from+1000, n)] {
			batch.Put(key, value)
		}
		if err := batch.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	return s, keys, value
}

// benchKeyList is the keys from to from+n, shuffled.
func benchKeyList(from, n int) []string {
	keys := make([]string, n)
	for i, p := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
		keys[i] = fmt.Sprintf("key:%012d", from+p)
	}
	return keys
}

// BenchmarkWrite is what a put cannot be faster than: write(2) of its bytes.
func BenchmarkWrite(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, benchFrame)
	b.SetBytes(benchFrame)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPut(b *testing.B) {
	s, keys, value := benchStore(b, 0)
	b.SetBytes(benchFrame)
	i := 0
	for b.Loop() {
		if err := s.Put(keys[i%len(keys)], value); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkPutBatch1000(b *testing.B) {
	s, keys, value := benchStore(b, 0)
	i := 0
	for b.Loop() {
		batch := s.NewBatch()
		for range 1000 {
			batch.Put(keys[i%len(keys)], value)
			i++
		}
		if err := batch.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/put")
}

func BenchmarkGet(b *testing.B) {
	s, keys, _ := benchStore(b, benchKeys)
	i := 0
	for b.Loop() {
		if _, err := s.Get(keys[i%len(keys)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkGetInto(b *testing.B) {
	s, keys, _ := benchStore(b, benchKeys)
	var dst []byte
	i := 0
	for b.Loop() {
		var err error
		if dst, err = s.GetInto(dst[:0], keys[i%len(keys)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkGetMiss(b *testing.B) {
	s, _, _ := benchStore(b, benchKeys)
	missing := benchKeyList(benchKeys, benchKeys)
	i := 0
	for b.Loop() {
		if _, err := s.Get(missing[i%len(missing)]); err != bitcask.ErrNotFound {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkMixedParallel is half puts, half gets, on all cores.
func BenchmarkMixedParallel(b *testing.B) {
	s, keys, value := benchStore(b, benchKeys)
	b.ResetTimer() // b.Loop would; RunParallel does not
	b.RunParallel(func(pb *testing.PB) {
		r := rand.New(rand.NewPCG(rand.Uint64(), 1))
		var dst []byte
		for i := 0; pb.Next(); i++ {
			key := keys[r.IntN(len(keys))]
			var err error
			if i%2 == 0 {
				err = s.Put(key, value)
			} else {
				dst, err = s.GetInto(dst[:0], key)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// A read into a buffer with room, and a miss, allocate nothing.
func TestReadsAllocateNothing(t *testing.T) {
	s, err := bitcask.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Put("key", make([]byte, 128)); err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 0, 256)
	allocs := testing.AllocsPerRun(100, func() {
		if out, err := s.GetInto(dst, "key"); err != nil || len(out) != 128 {
			t.Fatal(out, err)
		}
		if _, err := s.GetInto(dst, "other"); err != bitcask.ErrNotFound {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

var openKeys = flag.Int("open.keys", 200_000, "keys of BenchmarkOpenAfterClose")

// BenchmarkOpenAfterClose opens a store that was closed, with its INDEX loaded afterwards and at Open, in turns. loaded
// is the time until all of it is loaded, first-get that of gets that load a stripe of a store in which nothing else
// does.
func BenchmarkOpenAfterClose(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "store")
	open := func(load seam.Load) (*bitcask.Store, time.Duration) {
		begin := time.Now()
		s, err := bitcask.Open(dir, seam.With(&bitcask.Options{Sync: bitcask.SyncNone}, seam.Options{Load: load}))
		if err != nil {
			b.Fatal(err)
		}
		return s, time.Since(begin)
	}
	s, _ := open(seam.LoadUsual)
	value := make([]byte, 64)
	for from := 0; from < *openKeys; from += 1000 {
		batch := s.NewBatch()
		for i := from; i < min(from+1000, *openKeys); i++ {
			batch.Put(fmt.Sprintf("key:%012d", i), value)
		}
		if err := batch.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	closeBench(b, s)
	var took [2]time.Duration
	var loaded time.Duration
	var first, second []time.Duration // gets of a stripe: one that searches the INDEX, and one that loads the stripe
	for b.Loop() {
		for i, load := range []seam.Load{seam.LoadUsual, seam.LoadAtOpen} {
			s, d := open(load)
			took[i] += d
			if i == 0 {
				begin := time.Now()
				for bitcask.Unloaded(s) > 0 {
					time.Sleep(time.Millisecond)
				}
				loaded += d + time.Since(begin)
			}
			closeBench(b, s)
		}
		s, _ := open(seam.LoadOnDemand)
		var got [keydir.Stripes]bool
		for i := range 2000 { // of every stripe
			key := fmt.Sprintf("key:%012d", i)
			before, begin := bitcask.Unloaded(s), time.Now()
			if _, err := s.Get(key); err != nil {
				b.Fatal(err)
			}
			d, stripe := time.Since(begin), s.StripeOfKey(key)
			if bitcask.Unloaded(s) < before {
				second = append(second, d)
			} else if !got[stripe] {
				first = append(first, d)
			}
			got[stripe] = true
		}
		closeBench(b, s)
	}
	slices.Sort(first)
	slices.Sort(second)
	b.ReportMetric(float64(took[0])/float64(b.N), "open-ns/op")
	b.ReportMetric(float64(took[1])/float64(b.N), "eager-ns/op")
	b.ReportMetric(float64(loaded)/float64(b.N), "loaded-ns/op")
	b.ReportMetric(float64(first[len(first)/2]), "first-get-p50-ns")
	b.ReportMetric(float64(first[len(first)*99/100]), "first-get-p99-ns")
	b.ReportMetric(float64(second[len(second)/2]), "load-p50-ns")
}

func closeBench(b *testing.B, s *bitcask.Store) {
	b.Helper()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
