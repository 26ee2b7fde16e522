package db_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
)

// TestInterrupt: every call that walks through many elements ends when the transaction is to end, and nothing of it is committed.
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
		"List.Trim":   func(tx *db.Tx) error { return tx.List("list").Trim(n/2, -1) },
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
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := s.Begin(true)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			stop := errors.New("stop")
			tx.SetInterrupt(func() error { asked++; return stop })
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
