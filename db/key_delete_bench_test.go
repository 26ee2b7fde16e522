package db_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

// BenchmarkDeleteCollection deletes sets of ten and of a million members: one
// record in the log either way, and the memory is freed in the background.
func BenchmarkDeleteCollection(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, err := db.Open(b.TempDir(), &db.Options{Sync: db.SyncNone, NoMerge: true})
			if err != nil {
				b.Fatal(err)
			}
			members := make([]string, n)
			for i := range members {
				members[i] = fmt.Sprint("member", i)
			}
			var each []time.Duration
			for b.Loop() {
				for part := range slices.Chunk(members, 10_000) {
					if _, err := s.Set("set").Add(part...); err != nil {
						b.Fatal(err)
					}
				}
				begin := time.Now()
				if existed, err := s.Key("set").Delete(); err != nil || !existed {
					b.Fatal(existed, err)
				}
				each = append(each, time.Since(begin))
			}
			slices.Sort(each)
			b.ReportMetric(0, "ns/op") // that is mostly the loading
			b.ReportMetric(float64(each[len(each)/2].Nanoseconds()), "ns/delete")
			b.ReportMetric(float64(each[len(each)-1].Nanoseconds()), "ns/slowest")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
