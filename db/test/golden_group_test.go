package db_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// goldenV1i has groups of streams, with consumers and what is pending for them, and libraries of functions, one of them
// in two parts. It is made by go test ./db/test -run 'TestGoldenGroups$' -update
var goldenV1i = golden{
	dir: "testdata/golden-v1i", fill: fillGoldenV1i, last: lastOfGoldenV1i,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile}, indexed: true, hinted: true,
}

func fillGoldenV1i(t *testing.T, s *db.Store) {
	must(t, s.String("deadline").Put([]byte("v"), db.ExpireAt(time.UnixMilli(4e12)))) // for a TTL file
	for i, name := range modelNames {
		stream := s.Stream("stream " + name)
		for j := range uint64(8) {
			add(t, stream, j+1)
		}
		state := db.StreamGroupState{Name: name, Last: db.StreamID{Ms: 7}, Read: int64(i%3) - 1}
		for j := range int64(4) {
			consumer := fmt.Sprint(name[:min(len(name), 50)], j)
			state.Consumers = append(state.Consumers, db.StreamConsumer{Name: consumer, Seen: 1e12 + j, Active: 1e12*(j%2) - (j+1)%2})
			state.Pending = append(state.Pending, db.StreamPending{ID: db.StreamID{Ms: uint64(j + 2)}, Consumer: consumer, Delivered: 1e12, Deliveries: j + 1})
		}
		must(t, stream.RestoreGroup(state))
		must(t, stream.Group("other").Create(db.StreamGroupStart{}))
		must(t, putLibrary(s, fmt.Sprint("library_", i), "an older text"))
		must(t, putLibrary(s, fmt.Sprint("library_", i), fmt.Sprint("#!lua name=library_", i, "\n-- \x00\xff ", name, "\n")))
	}
	stream := s.Stream("stream a")
	ok[int](t)(stream.Group("a").Ack(db.StreamID{Ms: 2}))
	ok[bool](t)(stream.Group("other").Destroy())
	ok[int](t)(s.Stream("stream " + modelNames[0]).Trim(db.StreamTrim{MaxLen: 3})) // what is pending stays
	ok[bool](t)(s.Key("stream " + modelNames[2]).Delete())
	must(t, putLibrary(s, "library_0", ""))
	must(t, putLibrary(s, "two_parts", strings.Repeat("0123456789abcdef", 4100)))
	must(t, mergeEverything(s))
	must(t, putLibrary(s, "library_1", "after the merge"))
	must(t, stream.Group("made later").Create(db.StreamGroupStart{Last: true}))
	for i := range uint64(60) {
		add(t, s.Stream("appended"), i+1, db.Field{Name: "of so many bytes", Value: make([]byte, 60)})
	}
}

func lastOfGoldenV1i(t *testing.T, s *db.Store) {
	stream := s.Stream("stream a")
	ok[int](t)(stream.Group("a").Ack(db.StreamID{Ms: 3}))
	add(t, stream, 1<<40)
	must(t, putLibrary(s, "library_2", ""))
	must(t, putLibrary(s, "active", "in the active segment"))
}

func TestGoldenGroups(t *testing.T) { goldenV1i.test(t) }
