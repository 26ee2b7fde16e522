package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/vfs"
)

func TestKeyHandle(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		key := k.Key("k")
		equal(t, "Type", ok[db.Type](t)(key.Type()), db.TypeNone)
		_, err := key.TTL()
		equal(t, "TTL of nothing", err, db.ErrNotFound)
		_, err = key.Deadline()
		equal(t, "Deadline of nothing", err, db.ErrNotFound)
		equal(t, "Rename of nothing", key.Rename("x"), db.ErrNotFound)
		equal(t, "Expire of nothing", ok[bool](t)(key.Expire(time.Hour)), false)
		ok[int](t)(k.List("k").PushBack(b("x", "y")...))
		equal(t, "Type", ok[db.Type](t)(key.Type()), db.TypeList)
		equal(t, "TTL", ok[time.Duration](t)(key.TTL()), db.NoTTL)
		equal(t, "Deadline", ok[time.Time](t)(key.Deadline()).IsZero(), true)
		equal(t, "Expire XX", ok[bool](t)(key.Expire(time.Hour, db.IfPresent)), false)
		at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		equal(t, "ExpireAt", ok[bool](t)(key.ExpireAt(at)), true)
		equal(t, "Deadline", ok[time.Time](t)(key.Deadline()).Equal(at), true)
		must(t, key.Rename("n"))
		equal(t, "Deadline moved along", ok[time.Time](t)(k.Key("n").Deadline()).Equal(at), true)
		equal(t, "Exists", ok[bool](t)(key.Exists()), false)
		equal(t, "Range", text(ok[[][]byte](t)(k.List("n").Range(0, -1))), "[x y]")
		must(t, k.String("taken").Put(nil))
		equal(t, "Rename IfAbsent", k.Key("n").Rename("taken", db.IfAbsent), db.ErrExists)
		must(t, k.Key("n").Rename("free", db.IfAbsent))
		equal(t, "Persist", ok[bool](t)(k.Key("free").Persist()), true)
		equal(t, "TTL", ok[time.Duration](t)(k.Key("free").TTL()), db.NoTTL)
		equal(t, "Expire in the past", ok[bool](t)(k.Key("free").Expire(-time.Second)), true)
		equal(t, "Delete", ok[bool](t)(k.Key("free").Delete()), false)
	})
}

func TestRenameOfEveryType(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		must(t, k.String("1").Put([]byte("v")))
		ok[bool](t)(k.Hash("2").Put("f", []byte("v")))
		ok[int](t)(k.List("3").PushFront(b("b", "a")...))
		ok[int](t)(k.Set("4").Add("m"))
		ok[int](t)(k.SortedSet("5").Add(db.Scored{Member: "m", Score: 7}))
		for i := 5; i > 0; i-- { // each replaces another type
			must(t, k.Key(fmt.Sprint(i)).Rename(fmt.Sprint(i+1)))
		}
		equal(t, "string", string(ok[[]byte](t)(k.String("2").Get())), "v")
		equal(t, "hash", string(ok[[]byte](t)(k.Hash("3").Get("f"))), "v")
		equal(t, "list", text(ok[[][]byte](t)(k.List("4").Range(0, -1))), "[a b]")
		equal(t, "set", ok[bool](t)(k.Set("5").Has("m")), true)
		equal(t, "sorted set", ok[float64](t)(k.SortedSet("6").Score("m")), 7)
	})
}

func TestKeyspaceHandle(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		ks := k.Keyspace()
		must(t, ks.Put(db.Pair{Key: "a", Value: []byte("1")}, db.Pair{Key: "b"}, db.Pair{Key: "a", Value: []byte("2")}))
		ok[int](t)(k.Set("s").Add("m"))
		got := ok[[][]byte](t)(ks.Get("a", "none", "b", "s"))
		equal(t, "Get", fmt.Sprintf("%s %v %v %v", got[0], got[1] == nil, got[2] == nil, got[3] == nil), "2 true false true")
		equal(t, "Exists", ok[int](t)(ks.Exists("a", "a", "none", "s")), 3)
		equal(t, "PutWith IfAbsent", ks.PutWith([]db.Pair{{Key: "x"}, {Key: "s"}}, db.IfAbsent), db.ErrExists)
		must(t, ks.PutWith([]db.Pair{{Key: "x"}, {Key: "y"}}, db.IfAbsent))
		names := ok[[]string](t)(ks.Keys("[axz]"))
		slices.Sort(names)
		equal(t, "Keys", strings.Join(names, " "), "a x")
		equal(t, "Delete", ok[int](t)(ks.Delete("a", "b", "a", "none", "s", "x", "y")), 5)
		equal(t, "Keys", len(ok[[]string](t)(ks.Keys("*"))), 0)
	})
}

func TestScanKeys(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		for i := range 500 {
			key := fmt.Sprint("key:", i)
			if i%5 == 0 {
				ok[int](t)(k.Set(key).Add("m"))
			} else {
				must(t, k.String(key).Put([]byte("v")))
			}
		}
		count := func(o db.KeyScanOptions) (n, calls int) {
			seen := map[string]bool{}
			for cursor := uint64(0); ; {
				page, next, err := k.Keyspace().Scan(cursor, o)
				must(t, err)
				for _, info := range page {
					equal(t, "seen before", seen[info.Key], false)
					seen[info.Key] = true
				}
				calls++
				if cursor = next; cursor == 0 {
					return len(seen), calls
				}
			}
		}
		n, calls := count(db.KeyScanOptions{})
		equal(t, "Scan", n, 500)
		equal(t, "calls", calls, 50)
		n, _ = count(db.KeyScanOptions{Type: db.TypeSet, Count: 77})
		equal(t, "Scan of sets", n, 100)
		n, calls = count(db.KeyScanOptions{Match: "key:1?", Count: 1000})
		equal(t, "Scan with a pattern", n, 10)
		equal(t, "calls", calls, 1)
		n = 0
		for key := range each(t, k.Keyspace().All()) {
			equal(t, key.Key, key.Type == db.TypeSet, strings.HasSuffix(key.Key, "0") || strings.HasSuffix(key.Key, "5"))
			n++
			ok[bool](t)(k.Key(key.Key).Delete())
		}
		equal(t, "All", n, 500)
		n, _ = count(db.KeyScanOptions{})
		equal(t, "Scan of nothing", n, 0)
	})
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := db.Open("data", seam.With(&db.Options{NoMerge: true, ExpireEvery: -1}, seam.Options{FS: vfs.NewMem()}))
		must(t, err)
		defer func() { must(t, s.Close()) }()
		must(t, s.String("a").Put([]byte("v"), db.TTL(time.Second)))
		must(t, s.String("b").Put([]byte("v"), db.ExpireAt(time.Now().Add(2*time.Second))))
		ok[int](t)(s.Set("c").Add("old"))
		ok[bool](t)(s.Key("c").Expire(time.Second))
		equal(t, "TTL", ok[time.Duration](t)(s.Key("a").TTL()), time.Second)
		time.Sleep(999 * time.Millisecond)
		equal(t, "TTL", ok[time.Duration](t)(s.Key("a").TTL()), time.Millisecond)
		must(t, s.String("a").Put([]byte("w"), db.KeepTTL))
		time.Sleep(time.Millisecond)
		_, err = s.String("a").Get()
		equal(t, "Get after the deadline", err, db.ErrNotFound)
		equal(t, "Exists", ok[int](t)(s.Keyspace().Exists("a", "b", "c")), 1)
		equal(t, "Keys", text(ok[[]string](t)(s.Keyspace().Keys("*"))), "[b]")
		equal(t, "Put IfPresent", s.String("a").Put(nil, db.IfPresent), db.ErrNotFound)
		equal(t, "Add after the deadline", ok[int](t)(s.Set("c").Add("new")), 1)
		equal(t, "Members", text(ok[[]string](t)(s.Set("c").Members())), "[new]")
		equal(t, "TTL", ok[time.Duration](t)(s.Key("c").TTL()), db.NoTTL)
		must(t, s.String("b").Put([]byte("w")))
		equal(t, "TTL after a plain Put", ok[time.Duration](t)(s.Key("b").TTL()), db.NoTTL)
		ok[bool](t)(s.Key("c").Expire(time.Minute))
		ok[int](t)(s.Set("c").Remove("new"))
		ok[int](t)(s.Set("c").Add("again"))
		equal(t, "TTL of a key made again", ok[time.Duration](t)(s.Key("c").TTL()), db.NoTTL)
		must(t, s.Update(func(tx *db.Tx) error {
			ok[bool](t)(tx.Key("c").Expire(time.Minute))
			ok[int](t)(tx.Set("c").Remove("again"))
			ok[int](t)(tx.Set("c").Add("again"))
			equal(t, "TTL within the transaction", ok[time.Duration](t)(tx.Key("c").TTL()), db.NoTTL)
			return nil
		}))
		equal(t, "TTL after the transaction", ok[time.Duration](t)(s.Key("c").TTL()), db.NoTTL)
		equal(t, "Put with no time", s.String("x").Put(nil, db.TTL(time.Microsecond)) != nil, true)
		equal(t, "Put with two deadlines", s.String("x").Put(nil, db.TTL(time.Second), db.KeepTTL) != nil, true)
	})
}
