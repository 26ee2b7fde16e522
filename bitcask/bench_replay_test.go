package bitcask_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/keydir"
)

// replayRecords is how many records of each sort the benchmarks of whole logs have.
const replayRecords = 40_000

var replaySorts = []string{"string", "hash", "zset", "list"}

// fillForReplay writes a log of one sort of records, half of them overwritten later.
func fillForReplay(b *testing.B, s *bitcask.Store, sort string) {
	value := make([]byte, 64)
	types := map[string]keydir.Type{"hash": keydir.Hash, "zset": keydir.ZSet, "list": keydir.List}
	for from := 0; from < replayRecords; from += 500 {
		t, err := s.BeginAll(true)
		if err != nil {
			b.Fatal(err)
		}
		for i := from; i < from+500 && err == nil; i++ {
			n := i % (replayRecords / 2)
			if sort == "string" {
				err = t.PutString(0, fmt.Sprintf("key:%012d", n), value)
				continue
			}
			key := fmt.Sprintf("key:%d", n/100)
			coll, cerr := t.Collection(0, key, types[sort])
			switch err = cerr; {
			case err != nil:
			case sort == "hash":
				err = t.PutElem(0, key, coll, fmt.Sprintf("field:%d", n%100), value)
			case sort == "zset":
				err = t.PutScored(0, key, coll, fmt.Sprintf("member:%d", n%100), uint64(i))
			default:
				err = t.PutIndex(0, key, coll, int64(n%100), value)
			}
		}
		if err == nil {
			_, err = t.Commit()
		}
		t.End()
		t.Recycle()
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Rotate(); err != nil {
		b.Fatal(err)
	}
}

func replayOptions() *bitcask.Options {
	return seam.With(&bitcask.Options{Sync: bitcask.SyncNone, SegmentSize: 1 << 20}, seam.Options{NoIndex: true})
}

// BenchmarkReplay opens a store without an INDEX: hints are read and all records applied.
func BenchmarkReplay(b *testing.B) {
	for _, sort := range replaySorts {
		b.Run(sort, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "store")
			open := func() *bitcask.Store {
				s, err := bitcask.Open(dir, replayOptions())
				if err != nil {
					b.Fatal(err)
				}
				return s
			}
			s := open()
			fillForReplay(b, s, sort)
			closeBench(b, s)
			for b.Loop() {
				s := open()
				b.StopTimer()
				closeBench(b, s)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/replayRecords, "ns/record")
		})
	}
}

// BenchmarkMerge merges all segments of a log of which half is dead.
func BenchmarkMerge(b *testing.B) {
	for _, sort := range replaySorts {
		b.Run(sort, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				s, err := bitcask.Open(filepath.Join(b.TempDir(), fmt.Sprint("store", i)), replayOptions())
				if err != nil {
					b.Fatal(err)
				}
				fillForReplay(b, s, sort)
				b.StartTimer()
				if err := rewriteAll(s); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				closeBench(b, s)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/replayRecords, "ns/record")
		})
	}
}
