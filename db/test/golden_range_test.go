package db_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// goldenV1k has tombstones of ranges of lists, before a merge and after it. It is made by
// go test ./db/test -run 'TestGoldenRanges$' -update
var goldenV1k = golden{
	dir: "testdata/golden-v1k", fill: fillGoldenV1k, last: lastOfGoldenV1k,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile}, indexed: true, hinted: true,
}

func fillGoldenV1k(t *testing.T, s *db.Store) {
	fillGoldenLists(t, s, func(l db.List) {
		must(t, l.Trim(2, -3))
		ok[int](t)(l.PushFront([]byte("front again"), []byte("and again"), []byte("and once more")))
		ok[int](t)(l.PushBack([]byte("back again"), []byte("x"), []byte("x")))
		ok[int](t)(l.Remove(0, []byte("x")))
	}, func(l db.List) { ok[[][]byte](t)(l.PopFrontN(2)) })
}

// fillGoldenLists makes lists of several lengths and changes each of them twice; between the changes of the second one all segments
// are merged.
func fillGoldenLists(t *testing.T, s *db.Store, change, again func(l db.List)) {
	must(t, s.String("deadline").Put([]byte("v"), db.ExpireAt(time.UnixMilli(4e12)))) // for a TTL file
	for i, n := range []int{6, 30, 90} {
		l := s.List(fmt.Sprint("list ", n))
		var values [][]byte
		for j := range n {
			values = append(values, []byte(fmt.Sprint(j)))
		}
		ok[int](t)(l.PushBack(values...))
		change(l)
		if i == 1 {
			must(t, mergeEverything(s))
		}
		again(l)
	}
}

func lastOfGoldenV1k(t *testing.T, s *db.Store) {
	must(t, s.List("list 30").Trim(3, 9))
	ok[int](t)(s.List("list 30").PushBack([]byte("after the trim")))
	must(t, s.List("list 90").Trim(40, 50))
}

func TestGoldenRanges(t *testing.T) { goldenV1k.test(t) }
