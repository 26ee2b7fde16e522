package db_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

// memoryLoads are the rows of the table of what an entry may take, each with a
// function that puts the entries from to to-1.
var memoryLoads = []struct {
	name  string
	bytes float64 // most an entry may take, in the heap of the whole process
	fill  func(s *db.Store, from, to int) error
}{
	{"string, 16-byte key", 24, func(s *db.Store, from, to int) error {
		var pairs []db.Pair
		for i := from; i < to; i++ {
			pairs = append(pairs, db.Pair{Key: fmt.Sprintf("key:%012d", i), Value: eightBytes(i)})
		}
		return s.Keyspace().Put(pairs...)
	}},
	{"set member, 10 bytes", 28, func(s *db.Store, from, to int) error {
		var members []string
		for i := from; i < to; i++ {
			members = append(members, tenBytes(i))
		}
		_, err := s.Set("set").Add(members...)
		return err
	}},
	{"hash field, 10 bytes, one big hash", 28, func(s *db.Store, from, to int) error {
		var fields []db.Field
		for i := from; i < to; i++ {
			fields = append(fields, db.Field{Name: tenBytes(i), Value: eightBytes(i)})
		}
		_, err := s.Hash("hash").PutAll(fields...)
		return err
	}},
	{"hash field in 10-field hashes", 40, func(s *db.Store, from, to int) error {
		return s.Update(func(tx *db.Tx) error {
			for i := from; i < to; i += 10 {
				var fields []db.Field
				for j := range 10 {
					fields = append(fields, db.Field{Name: tenBytes(j), Value: eightBytes(j)})
				}
				if _, err := tx.Hash(fmt.Sprintf("key:%012d", i/10)).PutAll(fields...); err != nil {
					return err
				}
			}
			return nil
		})
	}},
	{"hash field with a deadline, 10 bytes, one big hash", 28 + 64, func(s *db.Store, from, to int) error {
		var fields []db.Field
		for i := from; i < to; i++ {
			fields = append(fields, db.Field{Name: tenBytes(i), Value: eightBytes(i)})
		}
		return s.Hash("hash").PutWith(fields, db.ExpireAt(time.UnixMilli(4e12+int64(from))))
	}},
	{"zset member, 10 bytes", 64, func(s *db.Store, from, to int) error {
		var members []db.Scored
		for i := from; i < to; i++ {
			members = append(members, db.Scored{Member: tenBytes(i), Score: float64(uint32(i) * 0x85EBCA6B)})
		}
		_, err := s.SortedSet("zset").Add(members...)
		return err
	}},
	{"list element", 14, func(s *db.Store, from, to int) error {
		var values [][]byte
		for i := from; i < to; i++ {
			values = append(values, eightBytes(i))
		}
		_, err := s.List("list").PushBack(values...)
		return err
	}},
}

// tenBytes is the name of the i-th element; odd factors keep all of them apart.
func tenBytes(i int) string { return fmt.Sprintf("m:%08x", uint32(i)*0x9E3779B1) }

func eightBytes(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }

// usedHeap returns the bytes of the heap in use, after all garbage is gone.
func usedHeap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// The heap of the whole process grows by no more than the bound for an entry, after loading as well
// as after opening the loaded store. An empty store does not count.
func TestMemoryPerEntry(t *testing.T) {
	if underRace {
		t.Skip("the race detector has memory of its own")
	}
	if testing.Short() {
		t.Skip("loads 1.2 million entries")
	}
	const n, commit = 200_000, 1000
	for _, load := range memoryLoads {
		t.Run(load.name, func(t *testing.T) {
			measured := func(dir string, fill func(s *db.Store)) float64 {
				s, err := db.Open(dir, &db.Options{Sync: db.SyncNone, NoMerge: true})
				if err != nil {
					t.Fatal(err)
				}
				fill(s)
				used := usedHeap()
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				return used
			}
			// An empty transaction over all keys waits until the index is loaded.
			nothing := func(s *db.Store) {
				if err := s.View(func(*db.Tx) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			empty, full := t.TempDir(), t.TempDir()
			base := measured(empty, nothing)
			loaded := measured(full, func(s *db.Store) {
				for from := 0; from < n; from += commit {
					if err := load.fill(s, from, from+commit); err != nil {
						t.Fatal(err)
					}
				}
			})
			opened := measured(full, nothing)
			t.Logf("%.1f bytes an entry after loading, %.1f after opening", (loaded-base)/n, (opened-base)/n)
			if most := max(loaded, opened) - base; most/n > load.bytes {
				t.Errorf("%.1f bytes an entry, want at most %.0f", most/n, load.bytes)
			}
		})
	}
}
