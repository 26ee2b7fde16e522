package db_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stavedb/stave/db"
)

// BenchmarkOrderedKeys measures the cost of Options.OrderedKeys, in memory and in time, and its gain. The keys have 16
// bytes.
func BenchmarkOrderedKeys(b *testing.B) {
	const n = 200_000
	dir := b.TempDir()
	key := func(i int) string { return fmt.Sprintf("user:%03d:%07d", i%1000, i) }
	s, err := db.Open(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	for from := 0; from < n; from += 1000 {
		err := s.Update(func(tx *db.Tx) error {
			for i := from; i < from+1000; i++ {
				if err := tx.String(key(i)).Put(make([]byte, 100)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, ordered := range []bool{false, true} {
		before := heap()
		s, err := db.Open(dir, &db.Options{OrderedKeys: ordered, NoMerge: true})
		if err != nil {
			b.Fatal(err)
		}
		held := float64(heap()-before) / n
		name := map[bool]string{false: "off", true: "on"}[ordered]
		b.Run(name+"/range of 500", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				found := 0
				for _, err := range s.Keyspace().Range(db.KeyPrefix(fmt.Sprintf("user:%03d:", i%1000))) {
					if err != nil {
						b.Fatal(err)
					}
					found++
				}
				if found != n/1000 {
					b.Fatal(found)
				}
			}
			b.ReportMetric(held, "B/key")
		})
		b.Run(name+"/overwrite", func(b *testing.B) {
			value := make([]byte, 100)
			for i := 0; b.Loop(); i++ {
				if err := s.String(key(i * 7919 % n)).Put(value); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
