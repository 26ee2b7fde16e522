package db_test

import (
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// goldenV1l has lists with holes and with elements that were inserted between two indexes, before a merge and after it.
// It is made by
// go test ./db/test -run 'TestGoldenPlaces$' -update
var goldenV1l = golden{
	dir: "testdata/golden-v1l", fill: fillGoldenV1l, last: lastOfGoldenV1l,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile}, indexed: true, hinted: true,
}

func fillGoldenV1l(t *testing.T, s *db.Store) {
	fillGoldenLists(t, s, func(l db.List) {
		ok[int](t)(l.Remove(1, []byte("4")))
		ok[int](t)(l.InsertAfter([]byte("2"), []byte("between 2 and 3")))
		ok[int](t)(l.InsertBefore([]byte("between 2 and 3"), []byte("after 2")))
		ok[int](t)(l.InsertBefore([]byte("3"), []byte("before 3")))
		ok[int](t)(l.InsertAfter([]byte("3"), []byte("in the hole")))
	}, func(l db.List) {
		ok[int](t)(l.Remove(0, []byte("between 2 and 3")))
		ok[int](t)(l.Remove(0, []byte("2")))
	})
}

func lastOfGoldenV1l(t *testing.T, s *db.Store) {
	l := s.List("list 30")
	must(t, insertZigzag("list 30", "before 3", 70)(s))
	must(t, l.Trim(3, 20))
	ok[int](t)(l.InsertBefore([]byte("z9"), []byte("after the trim")))
	ok[int](t)(s.List("list 6").Remove(0, []byte("1")))
}

func TestGoldenPlaces(t *testing.T) { goldenV1l.test(t) }
