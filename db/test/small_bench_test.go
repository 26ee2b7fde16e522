package db_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stavedb/stave/db"
)

// smallCollections are collections as caches and objects have them, and what makes one.
var smallCollections = []struct {
	name string
	make func(tx *db.Tx, key string) error
}{
	{"hash10", func(tx *db.Tx, key string) error {
		_, err := tx.Hash(key).PutAll(smallFields...)
		return err
	}},
	{"set5", func(tx *db.Tx, key string) error {
		_, err := tx.Set(key).Add(smallMembers...)
		return err
	}},
	{"zset5", func(tx *db.Tx, key string) error {
		_, err := tx.SortedSet(key).Add(smallScored...)
		return err
	}},
	{"list5", func(tx *db.Tx, key string) error {
		_, err := tx.List(key).PushBack(smallValues...)
		return err
	}},
}

var (
	smallFields  []db.Field
	smallMembers []string
	smallScored  []db.Scored
	smallValues  [][]byte
)

func init() {
	for i := range 10 {
		smallFields = append(smallFields, db.Field{Name: fmt.Sprint("field", i), Value: fmt.Appendf(nil, "value-%08d", i)})
	}
	for i := range 5 {
		smallMembers = append(smallMembers, fmt.Sprint("member", i))
		smallScored = append(smallScored, db.Scored{Member: smallMembers[i], Score: float64(7 * i)})
		smallValues = append(smallValues, smallFields[i].Value)
	}
}

// BenchmarkSmallCollections makes many small collections, 200 in a commit, as a server does that gets them in a pipeline.
// It reports the bytes of the heap, and of the log, that one of them takes.
func BenchmarkSmallCollections(b *testing.B) {
	const commit = 200
	for _, small := range smallCollections {
		b.Run(small.name, func(b *testing.B) {
			s, err := db.Open(b.TempDir(), &db.Options{Sync: db.SyncNone, NoMerge: true})
			if err != nil {
				b.Fatal(err)
			}
			empty := usedHeap()
			b.ResetTimer()
			keys := make([]string, 0, commit)
			for made := 0; made < b.N; made += len(keys) {
				keys = keys[:0]
				for i := range min(commit, b.N-made) {
					keys = append(keys, small.name+":"+strconv.Itoa(made+i))
				}
				makeCollections(b, s, keys, small.make)
			}
			b.StopTimer()
			b.ReportMetric((usedHeap()-empty)/float64(b.N), "heap-B/op")
			b.ReportMetric(float64(s.Stats().Written)/float64(b.N), "log-B/op")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// makeCollections makes a collection at each key, in one commit.
func makeCollections(b *testing.B, s *db.Store, keys []string, create func(tx *db.Tx, key string) error) {
	tx, err := s.Begin(true, keys...)
	if err != nil {
		b.Fatal(err)
	}
	for _, key := range keys {
		if err := create(tx, key); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := tx.End(nil); err != nil {
		b.Fatal(err)
	}
}
