package db_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
)

// TestOrderIsKeptOnDisk: a store that was merged and closed, several times, has its small hashes and sets in the order
// in which it had them before. Its log alone has another one, which is no finding of a check.
func TestOrderIsKeptOnDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := db.Open(dir, nil)
	must(t, err)
	put := func(s *db.Store, n int) (fields []string) {
		h := s.Hash(strconv.Itoa(n))
		for i := range n {
			field := strconv.Itoa(i * 7919 % n) // n has no factor in common with 7919
			_, err := h.Put(field, []byte("x"))
			must(t, err)
			fields = append(fields, field)
		}
		_, err := h.Put(fields[1], []byte("y")) // keeps its place
		must(t, err)
		_, err = h.Delete(fields[0])
		must(t, err)
		_, err = h.Put(fields[0], []byte("z")) // goes to the end
		must(t, err)
		return append(fields[1:], fields[0])
	}
	sizes := []int{4, 30, 200, 500}
	want := map[int][]string{}
	for _, n := range sizes {
		want[n] = put(s, n)
	}
	for range 3 {
		_, err := s.Merge(t.Context(), db.MergeOptions{All: true})
		must(t, err)
		must(t, s.Close())
		fromLog, err := db.Open(dir, seam.With(&db.Options{ReadOnly: true}, seam.Options{NoIndex: true}))
		must(t, err)
		checked, err := fromLog.Check(t.Context(), func(f bitcask.Finding) { t.Error(f) })
		if err != nil || !checked.Index {
			t.Fatal(checked, err)
		}
		must(t, fromLog.Close())
		s, err = db.Open(dir, nil)
		must(t, err)
		for _, n := range sizes {
			if have, err := s.Hash(strconv.Itoa(n)).Fields(); err != nil || !slices.Equal(have, want[n]) {
				t.Fatalf("%d fields: %v, want %v, %v", n, have, want[n], err)
			}
		}
	}
	must(t, s.Close())
}

// orderOps makes changes at random of a hash and a set: of names and, where the set has nothing else, of integers.
type orderOps struct {
	*rand.Rand
	space int
}

func (o orderOps) change(h db.Hash, s db.Set) error {
	field, member := fmt.Sprintf("f%d", o.IntN(o.space)), strconv.Itoa(o.IntN(o.space)*7919%1_000_003)
	if o.IntN(3*o.space) == 0 {
		member = fmt.Sprintf("m%d", o.IntN(3))
	}
	var err error
	switch o.IntN(12) {
	case 0, 1, 2, 3:
		_, err = h.Put(field, []byte("x"))
	case 4, 5, 6, 7:
		_, err = s.Add(member)
	case 8:
		_, err = h.Delete(field)
	case 9:
		_, err = s.Remove(member)
	case 10:
		_, err = s.Remove("m0", "m1", "m2")
	case 11:
		var fields []string
		if fields, err = h.Fields(); err == nil && len(fields) > 0 && o.IntN(10) == 0 {
			_, err = h.Delete(fields[o.IntN(len(fields)):]...)
		}
	}
	return err
}

func orders(t *testing.T, h db.Hash, s db.Set) [2][]string {
	t.Helper()
	fields, err := h.Fields()
	must(t, err)
	members, err := s.Members()
	must(t, err)
	return [2][]string{fields, members}
}

// TestOrderAfterRollback: what a transaction did to the order of hashes and sets is rolled back with it, also where a
// collection grew beyond the size that has one, or shrank.
func TestOrderAfterRollback(t *testing.T) {
	r := chance.Rand(t)
	s := dbtest.New(t)
	h, set := s.Hash("h"), s.Set("s")
	for round := range 60 {
		ops := orderOps{r, []int{8, 60, 300, 540, 2000}[round%5]}
		if r.IntN(4) == 0 {
			must(t, s.Flush())
		}
		for range r.IntN(ops.space) {
			must(t, ops.change(h, set))
		}
		before := orders(t, h, set)
		failed := errors.New("failed")
		err := s.Update(func(tx *db.Tx) error {
			h, set := tx.Hash("h"), tx.Set("s")
			for range r.IntN(4) {
				mark, within := tx.Savepoint(), orders(t, h, set)
				for range r.IntN(ops.space) {
					must(t, ops.change(h, set))
				}
				if r.IntN(2) == 0 {
					must(t, tx.RollbackTo(mark))
					sameOrders(t, orders(t, h, set), within)
				}
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		sameOrders(t, orders(t, h, set), before)
	}
}

func sameOrders(t *testing.T, have, want [2][]string) {
	t.Helper()
	for i := range have {
		if !slices.Equal(have[i], want[i]) {
			t.Fatalf("%d elements in order\n%v, want %d\n%v", len(have[i]), have[i], len(want[i]), want[i])
		}
	}
}
