package db_test

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
)

var (
	longFlag  = flag.Int("longstring", 100_000_000, "length in bytes of the string of BenchmarkLongString")
	chunkFlag = flag.Int("chunk", 0, "length of the chunks in BenchmarkLongString, in bytes")
)

// BenchmarkLongString is what edits and reads of a part of a long string cost, in
// time and in bytes of the log, and, for comparison, a short one.
func BenchmarkLongString(b *testing.B) {
	store, err := db.Open(b.TempDir(), seam.With(&db.Options{NoMerge: true}, seam.Options{ChunkSize: *chunkFlag}))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	value := make([]byte, *longFlag)
	for i := range value {
		value[i] = byte(rand.Uint32())
	}
	long, bits, n := store.String("long"), store.Bitmap("long"), int64(len(value))
	var buf []byte
	run := func(name string, op func() error) {
		b.Run(name, func(b *testing.B) {
			before := store.Stats().Bytes
			b.ReportAllocs()
			for b.Loop() {
				if err := op(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(store.Stats().Bytes-before)/float64(b.N), "logB/op")
		})
	}
	run("set", func() error { return long.Put(value) })
	run("get", func() error { buf, err = long.AppendTo(buf[:0]); return err })
	run("append", func() error { _, err := long.Append(value[:100]); return err })
	run("setrange", func() error { _, err := long.SetRange(rand.Int64N(n-100), value[:100]); return err })
	run("setbit", func() error { _, err := bits.Set(rand.Int64N(n*8), rand.IntN(2) == 0); return err })
	run("getrange", func() error { at := rand.Int64N(n - 100); buf, err = long.Range(buf[:0], at, at+99); return err })
	run("getbit", func() error { _, err := bits.Get(rand.Int64N(n * 8)); return err })
	run("strlen", func() error { _, err := long.Len(); return err })
	run("bitcount", func() error { _, err := bits.Count(db.AllBits); return err })
}
