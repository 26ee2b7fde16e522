package db_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// goldenV1g has streams: records of kind 14. It is made by
// go test ./db/test -run 'TestGoldenStreams$' -update
var goldenV1g = golden{
	dir: "testdata/golden-v1g", chunkSize: 32, fill: fillGoldenV1g, last: lastOfGoldenV1g,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile}, indexed: true, hinted: true,
}

func fillGoldenV1g(t *testing.T, s *db.Store) {
	for i := range 200 {
		add(t, s.Stream("only appended"), uint64((i+1)*(i+1)))
	}
	for i, name := range modelNames {
		stream := s.Stream("trimmed " + name)
		for j := range uint64(6) {
			_, err := stream.AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: 1 << (6 * j), Seq: j * uint64(i)}},
				db.Field{Name: name, Value: []byte(fmt.Sprint(j))}, db.Field{Name: "", Value: []byte(strings.Repeat(name, 3))})
			must(t, err)
		}
		ok[int](t)(stream.Trim(db.StreamTrim{MaxLen: 6 - i%7}))
		ok[int](t)(stream.Delete(db.StreamID{Ms: 1 << 30, Seq: 5 * uint64(i)}))
	}
	must(t, s.Stream("empty").Create(db.StreamInfo{Last: db.StreamID{Ms: 7, Seq: 7}, Added: 3}))
	add(t, s.Stream("deleted"), 1)
	ok[bool](t)(s.Key("deleted").Delete())
	add(t, s.Stream("deleted"), 1)
	must(t, mergeEverything(s))
	for i := range 100 {
		add(t, s.Stream("appended"), uint64(i+1), db.Field{Name: "of so many bytes", Value: make([]byte, 60)})
	}
	ok[int](t)(s.Stream("only appended").Trim(db.StreamTrim{MaxLen: 150}))
}

func lastOfGoldenV1g(t *testing.T, s *db.Store) {
	add(t, s.Stream("only appended"), 1<<50)
	ok[int](t)(s.Stream("only appended").Delete(db.StreamID{Ms: 10000}))
	must(t, s.Stream("empty").SetID(db.StreamID{Ms: 6}, db.StreamSetID{}))
}

func TestGoldenStreams(t *testing.T) { goldenV1g.test(t) }
