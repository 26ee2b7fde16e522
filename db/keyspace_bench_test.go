package db_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stavedb/stave/db"
)

// BenchmarkKeys: the names of all keys of a store, per key, with values that are not returned. They were put in another order
// than that of the index.
func BenchmarkKeys(b *testing.B) {
	const keys = 1_000_000
	s, err := db.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	value := make([]byte, 128)
	for i := range keys {
		if err := s.String(fmt.Sprintf("key:%012d", i)).Put(value); err != nil {
			b.Fatal(err)
		}
	}
	visits := map[string]func() (n int, err error){
		"All": func() (n int, err error) {
			for _, err := range s.Keyspace().All() {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
		"Keys": func() (int, error) {
			found, err := s.Keyspace().Keys("*")
			return len(found), err
		},
		"Scan": func() (n int, err error) {
			for cursor := uint64(0); ; {
				found, next, err := s.Keyspace().Scan(cursor, db.KeyScanOptions{Count: 1000})
				if n += len(found); err != nil || next == 0 {
					return n, err
				}
				cursor = next
			}
		},
	}
	for _, name := range slices.Sorted(maps.Keys(visits)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n, err := visits[name](); n != keys || err != nil {
					b.Fatalf("%d of %d keys, %v", n, keys, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
		})
	}
}
