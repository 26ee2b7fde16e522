package db_test

import (
	"strconv"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/vfs"
)

// BenchmarkCapture compares writes whose commits are captured with the same ones that are not.
func BenchmarkCapture(b *testing.B) {
	for name, on := range map[string]bool{"off": false, "on": true} {
		b.Run(name, func(b *testing.B) {
			for _, write := range captureWrites {
				b.Run(write.name, func(b *testing.B) {
					s, err := db.Open("data", seam.With(&db.Options{ExpireEvery: -1, NoMerge: true}, seam.Options{FS: vfs.NewMem()}))
					if err != nil {
						b.Fatal(err)
					}
					defer s.Close()
					if on {
						stop, err := serverside.DB.Capture(s, serverside.Capture{Written: func(serverside.Commit) {}})
						if err != nil {
							b.Fatal(err)
						}
						defer stop()
					}
					b.ReportAllocs()
					i := 0
					for b.Loop() {
						if err := write.run(s, i); err != nil {
							b.Fatal(err)
						}
						i++
					}
				})
			}
		})
	}
}

var captureWrites = []struct {
	name string
	run  func(s *db.Store, i int) error
}{
	{"put", func(s *db.Store, i int) error { return s.String("key:" + strconv.Itoa(i%10_000)).Put(captureValue) }},
	{"hset", func(s *db.Store, i int) error {
		return first(s.Hash("h"+strconv.Itoa(i%100)).Put("f"+strconv.Itoa(i%50), captureValue))
	}},
	{"xadd", func(s *db.Store, i int) error {
		return first(s.Stream("x" + strconv.Itoa(i%100)).Add(db.Field{Name: "f", Value: captureValue}))
	}},
}

var captureValue = make([]byte, 100)
