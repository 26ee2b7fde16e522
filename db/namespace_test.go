package db_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

// whole is all that two namespaces hold, with what lives for an hour or so.
func whole(t *testing.T, s *db.Store) (text [2]string) {
	t.Helper()
	for ns := range text {
		view := ok[*db.Store](t)(s.Use(ns))
		keys := ok[[]string](t)(view.Keyspace().Keys("*"))
		slices.Sort(keys)
		for _, key := range keys {
			deadline := ok[time.Time](t)(view.Key(key).Deadline())
			text[ns] += fmt.Sprintf("%s: %s %d\n", key, content(t, view, key), deadline.UnixMilli())
		}
		var ordered []string
		for key := range each(t, view.Keyspace().Range(db.KeyRange{})) {
			ordered = append(ordered, key.Key)
		}
		equal(t, "keys in order", strings.Join(ordered, " "), strings.Join(keys, " "))
		equal(t, "keys", view.Len(), len(keys))
	}
	return text
}

// TestSwapAndFlushWithinTransaction has both, committed, rolled back, after other writes and before others, and after a
// new start.
func TestSwapAndFlushWithinTransaction(t *testing.T) {
	files := vfs.NewMem()
	openIt := func() *db.Store {
		return ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{OrderedKeys: true}, seam.Options{FS: files})))
	}
	s := openIt()
	other := ok[*db.Store](t)(s.Use(1))
	for _, key := range oneOfEach(t, s) {
		ok[bool](t)(s.Key(key).Expire(time.Hour))
	}
	ok[int](t)(other.List("string").PushBack([]byte("a list here")))
	must(t, other.String("hash").Put([]byte("a string here"), db.TTL(2*time.Hour)))
	must(t, other.String("only here").Put(nil))
	ok[bool](t)(other.Hash("fields").Put("f", nil))
	ok[[]db.FieldResult](t)(other.Hash("fields").ExpireFields(time.Hour, []string{"f"}))
	before := whole(t, s)

	no := errors.New("no")
	err := s.Update(func(tx *db.Tx) error {
		must(t, tx.Swap(0, 1))
		must(t, tx.String("string").Put(nil))
		must(t, tx.Flush())
		return no
	})
	if err != no {
		t.Fatal(err)
	}
	equal(t, "after a swap that was taken back", whole(t, s), before)
	must(t, s.Update(func(tx *db.Tx) error {
		mark := tx.Savepoint()
		must(t, tx.Flush())
		tx.RollbackTo(mark)
		must(t, tx.Swap(0, 1))
		must(t, tx.Swap(1, 1))
		equal(t, "the other's list", content(t, tx, "string"), `["a list here"]`)
		if err := tx.Swap(0, 99); err != db.ErrNamespace {
			t.Errorf("a swap with nothing: %v", err)
		}
		return nil
	}))
	swapped := [2]string{before[1], before[0]}
	equal(t, "after a swap", whole(t, s), swapped)
	must(t, s.Close())
	s = openIt()
	equal(t, "after a new start", whole(t, s), swapped)
	left := ok[[]time.Duration](t)(s.Hash("fields").FieldTTLs("f"))
	equal(t, "the field's deadline went with it", left[0] > 59*time.Minute, true)
	must(t, s.Update(func(tx *db.Tx) error {
		must(t, tx.Flush())
		return tx.String("left").Put([]byte("x"))
	}))
	equal(t, "after a flush", whole(t, s), [2]string{"left: \"x\" -62135596800000\n", before[0]})
	must(t, s.Close())
	s = openIt()
	equal(t, "after another new start", whole(t, s), [2]string{"left: \"x\" -62135596800000\n", before[0]})
	must(t, s.Close())
}

// TestSwapAndFlushWithEmptiedKeys: a transaction that has emptied collections swaps and deletes all other keys, and lists and counts them.
func TestSwapAndFlushWithEmptiedKeys(t *testing.T) {
	const keys = 400
	fill := func(s *db.Store) {
		for i := range keys {
			name := fmt.Sprint("key", i)
			if i%2 == 0 {
				must(t, first(s.Hash(name).Put("field", nil)))
			} else {
				must(t, s.String(name).Put(nil))
			}
		}
	}
	empty := func(tx *db.Tx) {
		for i := 0; i < keys; i += 4 {
			must(t, first(tx.Hash(fmt.Sprint("key", i)).Delete("field")))
		}
		equal(t, "keys in the transaction", len(ok[[]string](t)(tx.Keyspace().Keys("*"))), keys*3/4)
		equal(t, "number of keys in the transaction", tx.Len(), keys*3/4)
	}
	for name, test := range map[string]struct {
		do          func(tx *db.Tx) error
		here, there int
	}{
		"flush": {func(tx *db.Tx) error { return tx.Flush() }, 0, 0},
		"swap":  {func(tx *db.Tx) error { return tx.Swap(0, 1) }, 0, keys * 3 / 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{}, seam.Options{FS: vfs.NewMem()})))
			defer s.Close()
			fill(s)
			must(t, s.Update(func(tx *db.Tx) error { empty(tx); return test.do(tx) }))
			equal(t, "keys", len(ok[[]string](t)(s.Keyspace().Keys("*"))), test.here)
			equal(t, "keys of the other namespace", len(ok[[]string](t)(ok[*db.Store](t)(s.Use(1)).Keyspace().Keys("*"))), test.there)
		})
	}
}
