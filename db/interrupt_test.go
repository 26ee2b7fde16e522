package db_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
)

// TestInterrupt: every call that walks through many elements ends when the transaction is to end, and nothing of it is
// committed.
func TestInterrupt(t *testing.T) {
	s := openMemory(t)
	const n = 1000
	err := s.Update(func(tx *db.Tx) error {
		for i := range n {
			name := fmt.Sprintf("%d %s", i, strings.Repeat("a", 40))
			_, e1 := tx.Set("set").Add(name)
			_, e2 := tx.SortedSet("zset").Add(db.Scored{Member: name, Score: float64(i)})
			_, e3 := tx.Hash("hash").Put(name, []byte("v"))
			_, e4 := tx.List("list").PushBack([]byte(name))
			e5 := tx.String(fmt.Sprint("key", i)).Put([]byte(name))
			if err := errors.Join(e1, e2, e3, e4, e5); err != nil {
				return err
			}
		}
		g := db.StreamGroupState{Name: "g", Consumers: []db.StreamConsumer{{Name: "c"}}}
		for i := range uint64(n) {
			g.Pending = append(g.Pending, db.StreamPending{ID: db.StreamID{Ms: i}, Consumer: "c"})
		}
		if _, err := tx.Stream("stream").Add(db.Field{Name: "f"}); err != nil {
			return err
		}
		if err := tx.Stream("stream").RestoreGroup(g); err != nil {
			return err
		}
		return errors.Join(tx.String("long").Put([]byte(strings.Repeat("ab", 2000))), tx.String("other").Put([]byte(strings.Repeat("ba", 2000))))
	})
	if err != nil {
		t.Fatal(err)
	}
	all := func([]byte) bool { return true }
	keys := func(key string) (list []string) {
		for range n {
			list = append(list, key)
		}
		return list
	}
	for name, call := range map[string]func(tx *db.Tx) error{
		"Set.Visit":       func(tx *db.Tx) error { return tx.Set("set").Visit(nil, all) },
		"Set.Scan":        func(tx *db.Tx) error { _, _, err := tx.Set("set").Scan(0, db.ScanOptions{Count: n}); return err },
		"Set.Pop":         func(tx *db.Tx) error { _, err := tx.Set("set").Pop(n); return err },
		"Set.Random":      func(tx *db.Tx) error { _, err := tx.Set("set").Random(-n); return err },
		"Set.Union":       func(tx *db.Tx) error { _, err := tx.Set("set").Union("set"); return err },
		"Keyspace.Keys":   func(tx *db.Tx) error { _, err := tx.Keyspace().Keys("*a*b"); return err },
		"Keyspace.Exists": func(tx *db.Tx) error { _, err := tx.Keyspace().Exists(keys("set")...); return err },
		"Keyspace.Delete": func(tx *db.Tx) error { _, err := tx.Keyspace().Delete(keys("none")...); return err },
		"Hash.Visit":      func(tx *db.Tx) error { return tx.Hash("hash").Visit(nil, func(_, _ []byte) bool { return true }) },
		"SortedSet.Visit": func(tx *db.Tx) error {
			return tx.SortedSet("zset").Visit(db.RankRange{Stop: -1}, nil, func([]byte, float64) bool { return true })
		},
		"List.Visit": func(tx *db.Tx) error { return tx.List("list").Visit(0, -1, nil, all) },
		"List.Positions": func(tx *db.Tx) error {
			_, err := tx.List("list").Positions([]byte("none"), db.PositionOptions{})
			return err
		},
		"List.Remove": func(tx *db.Tx) error { _, err := tx.List("list").Remove(0, []byte("none")); return err },
		"List.Insert": func(tx *db.Tx) error { _, err := tx.List("list").InsertBefore([]byte("none"), nil); return err },
		"SortedSet.RemoveRange": func(tx *db.Tx) error {
			_, err := tx.SortedSet("zset").RemoveRange(db.RankRange{Stop: n / 2})
			return err
		},
		"Key.Sort":      func(tx *db.Tx) error { _, err := tx.Key("list").Sort(db.SortOptions{Alpha: true}); return err },
		"Key.Copy":      func(tx *db.Tx) error { return tx.Key("hash").CopyTo(0, "to") },
		"String.Common": func(tx *db.Tx) error { _, err := tx.Keyspace().LongestCommonSubsequence("long", "other"); return err },
		"SortedSet.Combine": func(tx *db.Tx) error {
			_, err := tx.SortedSet("to").PutCombined(db.Combination{Keys: []string{"zset", "set"}})
			return err
		},
		"StreamGroup.DeleteConsumer": func(tx *db.Tx) error {
			_, err := tx.Stream("stream").Group("g").DeleteConsumer("c")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := s.Begin(true)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			stop := errors.New("stop")
			serverside.DB.SetInterrupt(tx, func() error { asked++; return stop })
			_, puts := tx.Set("written").Add("before")
			got := call(tx)
			if asked == 0 {
				t.Error("nothing is asked")
			}
			_, end := tx.End(nil)
			if !errors.Is(got, stop) || !errors.Is(end, stop) || puts != nil {
				t.Errorf("the call ends with %v, the transaction with %v", got, end)
			}
			if written, err := s.Keyspace().Exists("written", "to"); written != 0 || err != nil {
				t.Errorf("%d keys are there, %v", written, err)
			}
		})
	}
}

// TestRollbackOfAnInterruptedCall: a transaction goes on after a call that was interrupted has been rolled back.
func TestRollbackOfAnInterruptedCall(t *testing.T) {
	s := open(t)
	for i := range 1000 {
		ok[int](t)(s.List("list").PushBack([]byte(fmt.Sprint(i))))
	}
	tx, err := s.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	ok[int](t)(tx.Set("written").Add("before"))
	before := tx.Savepoint()
	ok[int](t)(tx.Set("written").Add("after"))
	serverside.DB.SetInterrupt(tx, func() error { return stop })
	if _, err := tx.List("list").Remove(0, []byte("none")); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	must(t, tx.RollbackTo(before))
	serverside.DB.SetInterrupt(tx, nil)
	if _, err := tx.List("list").Remove(0, []byte("none")); err != nil {
		t.Error(err)
	}
	if _, err := tx.End(nil); err != nil {
		t.Error(err)
	}
	if n, err := s.Set("written").Len(); n != 1 || err != nil {
		t.Errorf("%d members, %v", n, err)
	}
}

// TestRoom: what reads much at once asks for room before, with the bytes or a little more, ends without it, and the
// transaction goes on.
func TestRoom(t *testing.T) {
	const n = 3 << 20
	s := open(t)
	long := make([]byte, n)
	must(t, s.String("string").Put(long))
	ok[bool](t)(s.Hash("hash").Put("f", long))
	ok[int](t)(s.List("list").PushBack(long, []byte("short")))
	must(t, s.String("short").Put(long[:1<<20]))
	for range 2 {
		ok[db.StreamID](t)(s.Stream("stream").Add(db.Field{Name: "f", Value: long[:n/2+n/8]}))
	}
	const entries = 10_000
	pending := s.Stream("pending").Group("g")
	must(t, pending.Create(db.StreamGroupStart{Make: true}))
	must(t, s.Update(func(tx *db.Tx) error {
		for range entries {
			if _, err := tx.Stream("pending").Add(db.Field{Name: "f"}); err != nil {
				return err
			}
		}
		_, err := tx.Stream("pending").Group("g").Read("c", 0)
		return err
	}))
	none := errors.New("no room")
	for name, tt := range map[string]struct {
		call        func(tx *db.Tx) error
		least, most int
	}{
		"String.Get":   {func(tx *db.Tx) error { _, err := tx.String("string").Get(); return err }, n, n},
		"String.Range": {func(tx *db.Tx) error { _, err := tx.String("string").Range(nil, 5, 2<<20); return err }, 2<<20 - 4, 2<<20 - 4},
		"Keyspace.Visit": {func(tx *db.Tx) error {
			return tx.Keyspace().Visit([]string{"short", "string"}, func(int, []byte) bool { return true })
		}, n, n},
		"Hash.Get":   {func(tx *db.Tx) error { _, err := tx.Hash("hash").Get("f"); return err }, n, n + n/8},
		"Hash.Visit": {func(tx *db.Tx) error { return tx.Hash("hash").Visit(nil, func(_, _ []byte) bool { return true }) }, n, n + n/8},
		"List.At":    {func(tx *db.Tx) error { _, err := tx.List("list").At(0); return err }, n, n + n/8},
		"List.Visit": {func(tx *db.Tx) error {
			return tx.List("list").Visit(0, -1, func(int) {}, func([]byte) bool { return true })
		}, n, n + n/8},
		"Key.Dump":           {func(tx *db.Tx) error { _, err := tx.Key("string").Dump(); return err }, n, 2*n + 100},
		"Key.Dump, a list":   {func(tx *db.Tx) error { _, err := tx.Key("list").Dump(); return err }, n, 2*n + 100},
		"Key.Dump, a stream": {func(tx *db.Tx) error { _, err := tx.Key("stream").Dump(); return err }, n / 2, 2*(n+n/4) + 200},
		"Key.Dump, a group":  {func(tx *db.Tx) error { _, err := tx.Key("pending").Dump(); return err }, 200 * entries, 300 * entries},
	} {
		tx, err := s.Begin(true)
		if err != nil {
			t.Fatal(err)
		}
		var asked []int
		refuse := false
		serverside.DB.SetRoom(tx, func(n int) error {
			asked = append(asked, n)
			if refuse {
				return none
			}
			return nil
		})
		if err := tt.call(tx); err != nil || len(asked) == 0 {
			t.Errorf("%s: %v, asked %v", name, err, asked)
		}
		for _, n := range asked {
			if n < tt.least || n > tt.most {
				t.Errorf("%s asks for %d bytes", name, n)
			}
		}
		refuse = true
		if err := tt.call(tx); !errors.Is(err, none) {
			t.Errorf("%s without room: %v", name, err)
		}
		if _, err := tx.String("short").Get(); err != nil {
			t.Errorf("%s: 1 MiB afterwards: %v", name, err)
		}
		if _, err := tx.End(nil); err != nil {
			t.Errorf("%s without room ends the transaction: %v", name, err)
		}
	}
}
