package db_test

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/structures"
)

// open opens an empty store in memory and checks it when the test ends.
func open(t *testing.T) *db.Store {
	t.Helper()
	s, err := db.Open("data", seam.With(&db.Options{}, seam.Options{FS: vfs.NewMem()}))
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// both runs a test on the handles of a store and, on another store, on those of
// one transaction.
func both(t *testing.T, test func(t *testing.T, k keys)) {
	t.Run("store", func(t *testing.T) { test(t, open(t)) })
	t.Run("transaction", func(t *testing.T) {
		must(t, open(t).Update(func(tx *db.Tx) error {
			test(t, tx)
			return nil
		}))
	})
}

// ok unwraps a result that must not be an error.
// each ranges over an iterator, and ends the test with its error.
func each[T any](t *testing.T, seq iter.Seq2[T, error]) iter.Seq[T] {
	t.Helper()
	return func(yield func(T) bool) {
		for elem, err := range seq {
			if must(t, err); !yield(elem) {
				return
			}
		}
	}
}

func b(words ...string) [][]byte {
	list := make([][]byte, len(words))
	for i, w := range words {
		list[i] = []byte(w)
	}
	return list
}

func text(v any) string { return fmt.Sprintf("%s", v) }

func TestStringHandle(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		s := k.String("s")
		_, err := s.Get()
		equal(t, "Get of nothing", err, db.ErrNotFound)
		equal(t, "Put IfPresent", s.Put(nil, db.IfPresent), db.ErrNotFound)
		must(t, s.Put([]byte("one"), db.IfAbsent))
		equal(t, "Put IfAbsent", s.Put(nil, db.IfAbsent), db.ErrExists)
		equal(t, "Append", ok[int](t)(s.Append([]byte(" two"))), 7)
		equal(t, "Len", ok[int](t)(s.Len()), 7)
		equal(t, "Get", string(ok[[]byte](t)(s.Get())), "one two")
		equal(t, "AppendTo", string(ok[[]byte](t)(s.AppendTo([]byte(">")))), ">one two")
		equal(t, "Range", string(ok[[]byte](t)(s.Range(nil, -3, -1))), "two")
		res, err := s.Set([]byte("41"), db.ReturnOld)
		must(t, err)
		equal(t, "Set Get", string(res.Old), "one two")
		equal(t, "Incr", ok[int64](t)(s.Incr(1)), 42)
		equal(t, "Put IfEqual of another value", s.Put(nil, db.IfEqual([]byte("41"))), db.ErrMismatch)
		must(t, s.Put([]byte("43"), db.IfEqual([]byte("42"))))
		equal(t, "Put IfNotEqual of the same value", s.Put(nil, db.IfNotEqual([]byte("43"))), db.ErrMismatch)
		must(t, s.Put([]byte("44"), db.IfNotEqual([]byte("42"))))
		equal(t, "two comparisons", s.Put(nil, db.IfEqual(nil), db.IfNotEqual(nil)), error(structures.ErrSyntax))
		equal(t, "a comparison and a condition", s.Put(nil, db.IfPresent, db.IfEqual([]byte("44"))), error(structures.ErrSyntax))
		equal(t, "Put IfEqual of nothing", k.String("none").Put(nil, db.IfEqual(nil)), db.ErrMismatch)
		equal(t, "Delete IfEqual of another value", ok[bool](t)(k.Key("s").Delete(db.IfEqual([]byte("43")))), false)
		equal(t, "Delete IfNotEqual of the same value", ok[bool](t)(k.Key("s").Delete(db.IfNotEqual([]byte("44")))), false)
		equal(t, "Delete IfEqual", ok[bool](t)(k.Key("s").Delete(db.IfEqual([]byte("44")))), true)
		equal(t, "Delete IfNotEqual of nothing", ok[bool](t)(k.Key("s").Delete(db.IfNotEqual(nil))), false)
		_, err = k.Key("s").Delete(db.IfPresent)
		equal(t, "Delete with another condition", err, error(structures.ErrSyntax))
		equal(t, "IncrWithin", ok[db.IncrResult[int64]](t)(s.IncrWithin(5, db.Bounds{Most: new(int64(7))})), db.IncrResult[int64]{Done: true, Value: 5, Added: 5})
		equal(t, "IncrWithin beyond a bound", ok[db.IncrResult[int64]](t)(s.IncrWithin(5, db.Bounds{Most: new(int64(7))})), db.IncrResult[int64]{Value: 5})
		equal(t, "IncrDecimalWithin", ok[db.IncrResult[string]](t)(s.IncrDecimalWithin("5", db.DecimalBounds{Most: "7.5", Saturate: true})), db.IncrResult[string]{Done: true, Value: "7.5", Added: "2.5"})
		must(t, s.Put(nil))
		equal(t, "an empty value is not nil", ok[[]byte](t)(s.Get()) != nil, true)
		_, err = k.Hash("s").Len()
		equal(t, "Len of a string as a hash", err, error(db.ErrWrongType))
	})
}

func TestHashHandle(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		h := k.Hash("h")
		_, err := h.Get("f")
		equal(t, "Get of nothing", err, db.ErrNotFound)
		equal(t, "Put", ok[bool](t)(h.Put("a", []byte("1"))), true)
		equal(t, "PutAll", ok[int](t)(h.PutAll(db.Field{Name: "a", Value: []byte("2")}, db.Field{Name: "b"})), 1)
		_, err = h.Put("a", nil, db.IfAbsent)
		equal(t, "Put IfAbsent", err, db.ErrExists)
		equal(t, "Incr", ok[int64](t)(h.Incr("a", 3)), 5)
		equal(t, "Has", ok[bool](t)(h.Has("b")), true)
		equal(t, "Len", ok[int](t)(h.Len()), 2)
		many := ok[[][]byte](t)(h.GetMany("a", "none", "b"))
		equal(t, "GetMany", fmt.Sprintf("%s %v %v", many[0], many[1] == nil, many[2] == nil), "5 true false")
		equal(t, "Entries", len(ok[[]db.Field](t)(h.Entries())), 2)
		equal(t, "Fields", len(ok[[]string](t)(h.Fields())), 2)
		page, next, err := h.Scan(0, db.ScanOptions{Match: "a"})
		must(t, err)
		equal(t, "Scan", fmt.Sprintf("%s %d", page, next), "[{a 5}] 0")
		for i := range 300 {
			ok[bool](t)(h.Put(fmt.Sprint("f", i), []byte(fmt.Sprint(i))))
		}
		seen := 0
		for f := range each(t, h.All()) {
			if f.Name[0] == 'f' {
				equal(t, "value", f.Name[1:], string(f.Value))
			}
			seen++
		}
		equal(t, "All", seen, 302)
		equal(t, "Delete", ok[int](t)(h.Delete("a", "b", "none")), 2)
	})
}

func TestListHandle(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		l := k.List("l")
		_, err := l.PopFront()
		equal(t, "PopFront of nothing", err, db.ErrNotFound)
		_, err = l.PopBackN(3)
		equal(t, "PopBackN of nothing", err, db.ErrNotFound)
		equal(t, "Set on nothing", l.Set(0, nil), db.ErrNotFound)
		_, err = l.PushWith(db.Back, b("x"), db.IfPresent)
		equal(t, "PushWith IfPresent", err, db.ErrNotFound)
		equal(t, "PushWith IfAbsent of nothing", ok[int](t)(l.PushWith(db.Back, nil, db.IfAbsent)), 0)
		equal(t, "PushBack", ok[int](t)(l.PushBack(b("c", "d", "e")...)), 3)
		equal(t, "PushFront", ok[int](t)(l.PushFront(b("b", "a")...)), 5)
		_, err = l.PushWith(db.Back, b("x"), db.IfAbsent)
		equal(t, "PushWith IfAbsent", err, db.ErrExists)
		_, err = l.PushWith(db.Back, b("x"), db.KeepTTL)
		equal[error](t, "PushWith KeepTTL", err, structures.ErrSyntax)
		equal(t, "PushFrontIfPresent", ok[int](t)(l.PushWith(db.Front, b("x"), db.IfPresent)), 6)
		equal(t, "Remove", ok[int](t)(l.Remove(0, []byte("x"))), 1)
		equal(t, "InsertBefore", ok[int](t)(l.InsertBefore([]byte("a"), []byte("A"))), 6)
		equal(t, "InsertAfter", ok[int](t)(l.InsertAfter([]byte("none"), nil)), -1)
		must(t, l.Set(-1, []byte("E")))
		equal(t, "Range", text(ok[[][]byte](t)(l.Range(0, -1))), "[A a b c d E]")
		equal(t, "At", string(ok[[]byte](t)(l.At(2))), "b")
		_, err = l.At(9)
		equal(t, "At beyond", err, db.ErrNotFound)
		must(t, l.Trim(1, -2))
		equal(t, "PopFront", string(ok[[]byte](t)(l.PopFront())), "a")
		equal(t, "PopBackN", text(ok[[][]byte](t)(l.PopBackN(2))), "[d c]")
		equal(t, "Len", ok[int](t)(l.Len()), 1)
		for i := range 300 {
			ok[int](t)(l.PushBack([]byte(fmt.Sprint(i + 1))))
		}
		must(t, l.Set(0, []byte("0")))
		next := 0
		for value := range each(t, l.All()) {
			equal(t, "element", string(value), fmt.Sprint(next))
			next++
		}
		equal(t, "All", next, 301)
	})
}

func TestSetHandle(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		s := k.Set("s")
		equal(t, "Pop of nothing", len(ok[[]string](t)(s.Pop(3))), 0)
		equal(t, "Add", ok[int](t)(s.Add("a", "b", "c", "a")), 3)
		equal(t, "Add", ok[int](t)(k.Set("u").Add("b", "d")), 2)
		equal(t, "Has", ok[bool](t)(s.Has("a")), true)
		equal(t, "Union", len(ok[[]string](t)(s.Union("u", "none"))), 4)
		equal(t, "Inter", text(ok[[]string](t)(s.Inter("u"))), "[b]")
		equal(t, "Diff", len(ok[[]string](t)(s.Diff("u"))), 2)
		equal(t, "Random", len(ok[[]string](t)(s.Random(-9))), 9)
		equal(t, "Random", len(ok[[]string](t)(s.Random(2))), 2)
		equal(t, "Members", len(ok[[]string](t)(s.Members())), 3)
		equal(t, "Remove", ok[int](t)(s.Remove("a", "none")), 1)
		equal(t, "Pop", len(ok[[]string](t)(s.Pop(1))), 1)
		equal(t, "Len", ok[int](t)(s.Len()), 1)
		for i := range 300 {
			ok[int](t)(s.Add(fmt.Sprint("m", i)))
		}
		seen := map[string]bool{}
		for member := range each(t, s.All()) {
			seen[member] = true
			ok[int](t)(s.Remove(member)) // the loop may change its own collection
		}
		equal(t, "All", len(seen), 301)
		equal(t, "Exists", ok[bool](t)(k.Key("s").Exists()), false)
	})
}

func TestSortedSetHandle(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		z := k.SortedSet("z")
		_, err := z.Score("a")
		equal(t, "Score of nothing", err, db.ErrNotFound)
		_, err = z.Rank("a")
		equal(t, "Rank of nothing", err, db.ErrNotFound)
		equal(t, "Add", ok[int](t)(z.Add(db.Scored{Member: "a", Score: 1}, db.Scored{Member: "b", Score: 2}, db.Scored{Member: "c", Score: 3})), 3)
		res, err := z.AddWith([]db.Scored{{Member: "a", Score: 0}, {Member: "b", Score: 9}}, db.IfGreater)
		must(t, err)
		equal(t, "AddWith", res, db.AddResult{Changed: 1})
		equal(t, "Incr", ok[float64](t)(z.Incr("b", -7.5)), 1.5)
		_, done, err := z.IncrWith("b", 1, db.IfAbsent)
		must(t, err)
		equal(t, "IncrWith", done, false)
		equal(t, "Score", ok[float64](t)(z.Score("b")), 1.5)
		equal(t, "Rank", ok[int](t)(z.Rank("b")), 1)
		equal(t, "RevRank", ok[int](t)(z.RevRank("a")), 2)
		equal(t, "Count", ok[int](t)(z.Count(db.ScoreRange{Min: 1, Max: 2})), 2)
		equal(t, "Range", fmt.Sprint(ok[[]db.Scored](t)(z.Range(db.RankRange{Stop: 1, Reverse: true}))), "[{c 3} {b 1.5}]")
		equal(t, "Range", fmt.Sprint(ok[[]db.Scored](t)(z.Range(db.LexRange{Min: db.LexOpen("a"), Max: db.LexMax}))), "[{b 1.5} {c 3}]")
		page, _, err := z.Scan(0, db.ScanOptions{Match: "c"})
		must(t, err)
		equal(t, "Scan", fmt.Sprint(page), "[{c 3}]")
		seen := ""
		for m := range each(t, z.All(db.ScoreRange{Min: 1, Max: 3, MinOpen: true})) {
			seen += fmt.Sprint(m.Member, m.Score, " ")
		}
		for _, r := range []db.Range{
			db.RankRange{Stop: -1, Reverse: true}, db.LexRange{Min: db.LexMin, Max: db.Lex("b")}, db.AllRanks, db.AllScores, db.Scores(1, 2), db.Top(2), db.Top(0),
		} {
			for m := range each(t, z.All(r)) {
				seen += m.Member
			}
			seen += ","
		}
		equal(t, "iterators", seen, "b1.5 c3 cba,ab,abc,abc,ab,cb,,")
		equal(t, "RemoveRange of scores", ok[int](t)(z.RemoveRange(db.Scores(1.2, 1.8))), 1)
		equal(t, "PopMin", fmt.Sprint(ok[[]db.Scored](t)(z.PopMin(1))), "[{a 1}]")
		ok[int](t)(z.Add(db.Scored{Member: "d", Score: 4}, db.Scored{Member: "e", Score: 5}))
		equal(t, "RemoveRange of ranks", ok[int](t)(z.RemoveRange(db.RankRange{})), 1)
		equal(t, "PopMax", fmt.Sprint(ok[[]db.Scored](t)(z.PopMax(9))), "[{e 5} {d 4}]")
		equal(t, "Remove", ok[int](t)(z.Remove("d")), 0)
		equal(t, "Len", ok[int](t)(z.Len()), 0)
	})
}

func TestIteratorErrors(t *testing.T) {
	s := open(t)
	must(t, s.String("s").Put(nil))
	steps := 0
	for f, err := range s.Hash("s").All() {
		equal(t, "error of a store's iterator", err, error(db.ErrWrongType))
		equal(t, "the field that comes with it", f.Name, "")
		steps++
	}
	equal(t, "steps", steps, 1)
	for range s.Hash("none").All() {
		t.Error("a field")
	}
	err := s.View(func(tx *db.Tx) error {
		for _, err := range tx.SortedSet("s").All(db.ScoreRange{}) {
			equal(t, "error of a transaction's iterator", err, error(db.ErrWrongType))
		}
		return nil
	})
	equal(t, "error of View", err, error(db.ErrWrongType))
}

func TestReadOnlyTransaction(t *testing.T) {
	s := open(t)
	must(t, s.String("s").Put([]byte("v")))
	must(t, s.View(func(tx *db.Tx) error {
		equal(t, "Put", tx.String("s").Put(nil), error(db.ErrReadOnly))
		_, err := tx.Keyspace().Delete("s")
		equal(t, "Delete", err, error(db.ErrReadOnly))
		return nil
	}))
	boom := errors.New("boom")
	equal(t, "Update", s.Update(func(tx *db.Tx) error {
		ok[int](t)(tx.List("l").PushBack(b("x")...))
		ok[bool](t)(tx.Key("s").Delete())
		return boom
	}), boom)
	equal(t, "Get", string(ok[[]byte](t)(s.String("s").Get())), "v")
	equal(t, "Exists", ok[int](t)(s.Keyspace().Exists("l", "s")), 1)
}
