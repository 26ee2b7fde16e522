package bitcask_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/bitcask"
)

// BenchmarkAll: all keys of a store with their values, per key. They were put in another order than that of the index.
func BenchmarkAll(b *testing.B) {
	const keys = 1_000_000
	s, err := bitcask.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	value := make([]byte, 128)
	for i := range keys {
		if err := s.Put(fmt.Sprintf("key:%012d", i), value); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for range b.N {
		n := 0
		for _, err := range s.All() {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != keys {
			b.Fatalf("%d of %d keys", n, keys)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
}
