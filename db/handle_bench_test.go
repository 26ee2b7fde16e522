package db_test

import (
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// BenchmarkCall is the overhead of single calls: a file system in memory, small values.
func BenchmarkCall(b *testing.B) {
	s, err := db.Open("d", seam.With(&db.Options{NoMerge: true, SegmentSize: 1 << 30}, seam.Options{FS: vfs.NewMem()}))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	value := []byte("sixteen bytes ..")
	if _, err := s.Hash("hash").Put("field", value); err != nil {
		b.Fatal(err)
	}
	if err := s.String("string").Put(value); err != nil {
		b.Fatal(err)
	}
	room := make([]byte, 0, 64)
	calls := []struct {
		name string
		call func() error
	}{
		{"Get", func() error { _, err := s.String("string").AppendTo(room); return err }},
		{"Len", func() error { _, err := s.String("string").Len(); return err }},
		{"HashGet", func() error { _, err := s.Hash("hash").AppendTo(room, "field"); return err }},
		{"HashHas", func() error { _, err := s.Hash("hash").Has("field"); return err }},
		{"Put", func() error { return s.String("string").Put(value) }},
		{"HashPut", func() error { _, err := s.Hash("hash").Put("field", value); return err }},
		{"Entries", func() error { _, err := s.Hash("hash").Entries(); return err }},
		{"View", func() error { return s.View(func(*db.Tx) error { return nil }) }},
		{"UpdateKeys", func() error {
			return s.UpdateKeys([]string{"string"}, func(tx *db.Tx) error { return tx.String("string").Put(value) })
		}},
		{"Begin", func() error {
			tx, err := s.Begin(false, "hash")
			if err == nil {
				_, err = tx.Hash("hash").Has("field")
				_, err = tx.End(err)
			}
			return err
		}},
	}
	for _, c := range calls {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
