package db_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

// goldenV1j has an INDEX of version 5, which keeps the order of hashes and sets; the log has another one. It is made by
// go test ./db/test -run 'TestGoldenOrder$' -update
var goldenV1j = golden{
	dir: "testdata/golden-v1j", chunkSize: 32, fill: fillGoldenV1j, last: lastOfGoldenV1b,
	files: []string{"MANIFEST", bitcask.TTLName, bitcask.IndexFile}, indexed: true, hinted: true,
}

var goldenOrders = []int{5, 60, 150}

// goldenField is the i-th field of the golden hash that has n, a prime number or one without a factor of 7919.
func goldenField(i, n int) string { return fmt.Sprint("field ", i*7919%n) }

func fillGoldenV1j(t *testing.T, s *db.Store) {
	for _, n := range goldenOrders {
		h, set := s.Hash("ordered"+strconv.Itoa(n)), s.Set("integers"+strconv.Itoa(n))
		for i := range n {
			ok[bool](t)(h.Put(goldenField(i, n), []byte("x")))
			ok[int](t)(set.Add(strconv.Itoa(i * 7919 % n)))
		}
		for i := range n / 2 { // which keep their places
			ok[bool](t)(h.Put(goldenField(2*i, n), []byte("y")))
		}
	}
	fillGoldenV1b(t, s)
}

// TestGoldenOrder: the store opens as all do, and its hashes and sets have the order that its INDEX gives them.
func TestGoldenOrder(t *testing.T) {
	goldenV1j.test(t)
	s, err := db.Open(goldenV1j.copy(t), goldenV1j.options())
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for _, n := range goldenOrders {
		var fields, members []string
		for i := range n {
			fields, members = append(fields, goldenField(i, n)), append(members, strconv.Itoa(i))
		}
		if have := ok[[]string](t)(s.Hash("ordered" + strconv.Itoa(n)).Fields()); !slices.Equal(have, fields) {
			t.Errorf("fields %q, want %q", have, fields)
		}
		if have := ok[[]string](t)(s.Set("integers" + strconv.Itoa(n)).Members()); !slices.Equal(have, members) {
			t.Errorf("members %q, want %q", have, members)
		}
	}
}
