package db_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// BenchmarkConsume is the job of a consumer group, an entry read and acknowledged once: fifty consumers in turn read
// sixteen entries in a transaction, one by one as the commands of a pipeline do, and acknowledge them in another one
// when the others have had their turn.
func BenchmarkConsume(b *testing.B) {
	const entries, consumers, pipeline = 100_000, 50, 16
	s, err := db.Open(b.TempDir(), nil)
	must := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	must(err)
	defer s.Close()
	value := make([]byte, 128)
	must(s.Update(func(tx *db.Tx) error {
		for range entries {
			if _, err := tx.Stream("stream").Add(db.Field{Name: "field", Value: value}); err != nil {
				return err
			}
		}
		return nil
	}))
	must(s.Stream("stream").Group("g").Create(db.StreamGroupStart{}))
	var names [consumers]string
	var held [consumers][]db.StreamID
	for i := range names {
		names[i] = fmt.Sprint("consumer", i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += pipeline {
		who := n / pipeline % consumers
		must(s.UpdateKeys([]string{"stream"}, func(tx *db.Tx) error {
			g := tx.Stream("stream").Group("g")
			for _, id := range held[who] {
				if did, err := g.Ack(id); err != nil || did != 1 {
					return fmt.Errorf("%v: %d, %w", id, did, err)
				}
			}
			return nil
		}))
		held[who] = held[who][:0]
		if n/pipeline%(entries/pipeline) == 0 {
			must(s.Stream("stream").Group("g").Set(db.StreamGroupStart{}))
		}
		must(s.UpdateKeys([]string{"stream"}, func(tx *db.Tx) error {
			g := tx.Stream("stream").Group("g")
			for range pipeline {
				err := g.VisitRead(structures.StreamGroupRead{Consumer: names[who], Count: 1}, func(id db.StreamID, _ [][]byte) bool {
					held[who] = append(held[who], id)
					return true
				})
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// BenchmarkClaimIdle looks among pending entries for those that have been pending for long, and finds none.
func BenchmarkClaimIdle(b *testing.B) {
	for _, pending := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(pending), func(b *testing.B) {
			s, err := db.Open(b.TempDir(), nil)
			must := func(err error) {
				if err != nil {
					b.Helper()
					b.Fatal(err)
				}
			}
			must(err)
			defer s.Close()
			must(s.Update(func(tx *db.Tx) error {
				for range pending {
					if _, err := tx.Stream("stream").Add(db.Field{Name: "field", Value: make([]byte, 128)}); err != nil {
						return err
					}
				}
				return nil
			}))
			g := s.Stream("stream").Group("g")
			must(g.Create(db.StreamGroupStart{}))
			for i := range 10 {
				must(first(g.Read(fmt.Sprint("consumer", i), pending/10)))
			}
			for b.Loop() {
				must(g.VisitClaimIdle(structures.StreamIdleClaim{Consumer: "other", MinIdle: 1 << 40}, func(db.StreamID, [][]byte, int64, int64) bool { return false }))
			}
		})
	}
}
