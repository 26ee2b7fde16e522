package db_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/rdb"
	"github.com/stavedb/stave/structures"
)

// oneOfEach makes a key of every type, called as the type is.
func oneOfEach(t *testing.T, k keys) []string {
	t.Helper()
	must(t, k.String("string").Put([]byte("value")))
	_, err := k.Hash("hash").PutAll(db.Field{Name: "f", Value: []byte("v")}, db.Field{Name: "", Value: []byte{}})
	must(t, err)
	_, err = k.List("list").PushBack([]byte("a"), []byte(""), []byte("c"))
	must(t, err)
	_, err = k.List("list").PushFront([]byte("front"))
	must(t, err)
	_, err = k.Set("set").Add("a", "b", "")
	must(t, err)
	_, err = k.SortedSet("zset").Add(db.Scored{Member: "m", Score: -1.5}, db.Scored{Member: "", Score: 2})
	must(t, err)
	for i := range 3 {
		_, err = k.Stream("stream").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: 5, Seq: uint64(i)}}, db.Field{Name: "f", Value: []byte("v")})
		must(t, err)
	}
	_, err = k.Stream("stream").Delete(db.StreamID{Ms: 5, Seq: 1})
	must(t, err)
	must(t, k.Stream("stream").SetID(db.StreamID{Ms: 7}, db.StreamSetID{}))
	must(t, k.Stream("stream").Group("g").Create(db.StreamGroupStart{}))
	must(t, first(k.Stream("stream").Group("g").Read("a", 1)))
	must(t, first(k.Stream("stream").Group("g").Read("b", 1)))
	return []string{"string", "hash", "list", "set", "zset", "stream"}
}

// content is what a key holds, on one line.
func content(t *testing.T, k keys, key string) string {
	t.Helper()
	typ, err := k.Key(key).Type()
	must(t, err)
	switch typ {
	case db.TypeString:
		value, err := k.String(key).Get()
		must(t, err)
		return fmt.Sprintf("%q", value)
	case db.TypeHash:
		fields := ok[[]db.Field](t)(k.Hash(key).Entries())
		slices.SortFunc(fields, func(a, b db.Field) int { return len(a.Name) - len(b.Name) })
		return fmt.Sprintf("%q", fields)
	case db.TypeList:
		return fmt.Sprintf("%q", ok[[][]byte](t)(k.List(key).Range(0, -1)))
	case db.TypeSet:
		members := ok[[]string](t)(k.Set(key).Members())
		slices.Sort(members)
		return fmt.Sprintf("%q", members)
	case db.TypeSortedSet:
		return fmt.Sprint(ok[[]db.Scored](t)(k.SortedSet(key).Range(db.RankRange{Stop: -1})))
	case db.TypeStream:
		entries := ok[[]db.StreamEntry](t)(k.Stream(key).Range(db.StreamID{}, db.MaxStreamID, 0))
		text := fmt.Sprint(entries, ok[db.StreamInfo](t)(k.Stream(key).Info()))
		for _, g := range ok[[]db.StreamGroupInfo](t)(k.Stream(key).Groups()) {
			text += fmt.Sprintf(" %+v %+v", g, ok[db.StreamGroupState](t)(k.Stream(key).Group(g.Name).State()))
		}
		return text
	}
	return "nothing"
}

func TestCopyTo(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		for _, key := range oneOfEach(t, k) {
			want := content(t, k, key)
			ok[bool](t)(k.Key(key).Expire(time.Hour))
			must(t, k.Key(key).CopyTo(0, "copy"))
			equal(t, "the copy of a "+key, content(t, k, "copy"), want)
			ttl, err := k.Key("copy").TTL()
			must(t, err)
			equal(t, "the deadline is copied", ttl > 59*time.Minute, true)
			ok[bool](t)(k.Key(key).Persist())
			equal(t, "the source of a "+key, content(t, k, key), want)
			equal(t, "copied over a key", k.Key(key).CopyTo(0, "copy", db.IfAbsent), db.ErrExists)
			must(t, k.Key(key).MoveTo(3))
			equal(t, "left behind", content(t, k, key), "nothing")
			equal(t, "moved again", k.Key(key).MoveTo(3), db.ErrNotFound)
			must(t, k.Key("copy").CopyTo(0, key))
			equal(t, "moved to where it exists", k.Key(key).MoveTo(3), db.ErrExists)
		}
		if err := k.Key("copy").CopyTo(0, "copy"); err != db.ErrSameKey {
			t.Errorf("a copy over itself: %v", err)
		}
		if err := k.Key("copy").MoveTo(0); err != db.ErrSameKey {
			t.Errorf("a move to where it is: %v", err)
		}
		if err := k.Key("copy").MoveTo(99); err != db.ErrNamespace {
			t.Errorf("a move out of the store: %v", err)
		}
	})
	s := open(t)
	want := content(t, s, oneOfEach(t, s)[2])
	must(t, s.Key("list").MoveTo(3))
	other := ok[*db.Store](t)(s.Use(3))
	equal(t, "in the other namespace", content(t, other, "list"), want)
}

func TestDumpAndRestore(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		for _, key := range oneOfEach(t, k) {
			payload := ok[[]byte](t)(k.Key(key).Dump())
			must(t, k.Key("copy").Restore(payload, db.TTL(time.Hour)))
			equal(t, "the copy of a "+key, content(t, k, "copy"), content(t, k, key))
			ttl, err := k.Key("copy").TTL()
			must(t, err)
			equal(t, "has the deadline", ttl > 59*time.Minute, true)
			if err := k.Key("copy").Restore(payload, db.IfAbsent); !errors.Is(err, db.ErrExists) {
				t.Errorf("over a key: %v", err)
			}
			payload[len(payload)-1]++
			if err := k.Key("copy").Restore(payload); !errors.Is(err, db.ErrPayload) {
				t.Errorf("damaged: %v", err)
			}
			equal(t, "after a refusal", content(t, k, "copy"), content(t, k, key))
		}
		payload := ok[[]byte](t)(k.Key("set").Dump())
		must(t, k.Key("copy").Restore(payload, db.ExpireAt(time.UnixMilli(1))))
		equal(t, "with a deadline that has passed", content(t, k, "copy"), "nothing")
		if _, err := k.Key("none").Dump(); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("a dump of nothing: %v", err)
		}
	})
}

// A name that is too long for a record is only met after some writes: they are rolled back.
func TestRestoreTakesBack(t *testing.T) {
	s := open(t)
	must(t, s.String("k").Put([]byte("old")))
	must(t, s.Update(func(tx *db.Tx) error {
		payload := rdbHash("short", string(make([]byte, 1<<16)))
		if err := tx.Key("k").Restore(payload); err != structures.ErrNameTooLong {
			t.Errorf("a name of 64 KiB: %v", err)
		}
		return nil
	}))
	equal(t, "value", content(t, s, "k"), `"old"`)
}

func TestRandomKey(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		if _, err := k.Keyspace().RandomKey(); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("of nothing: %v", err)
		}
		for n := range 200 {
			must(t, k.String(fmt.Sprint("key", n)).Put(nil))
			if n == 4 {
				// Of five, each is expected 200 times: less than 100 times by chance once in 10^17 runs.
				seen := map[string]int{}
				for range 1000 {
					seen[ok[string](t)(k.Keyspace().RandomKey())]++
				}
				for key, times := range seen {
					if times < 100 || len(seen) != 5 {
						t.Errorf("%s was drawn %d times of 1000, with %d keys of five", key, times, len(seen))
					}
				}
			}
		}
		seen := map[string]bool{}
		for range 100 {
			seen[ok[string](t)(k.Keyspace().RandomKey())] = true
		}
		equal(t, "more than a few keys are met", len(seen) > 10, true)
	})
}

func ExampleKey_Dump() {
	store := example()
	defer store.Close()

	_, err := store.Set("tags").Add("a", "b")
	check(err)
	payload, err := store.Key("tags").Dump()
	check(err)
	check(store.Key("copy").Restore(payload, db.TTL(time.Hour)))
	n, err := store.Set("copy").Len()
	check(err)
	fmt.Println(n)
	// Output: 2
}

// rdbHash is the payload of a hash whose fields are empty.
func rdbHash(names ...string) []byte {
	var w rdb.Writer
	w.Begin(rdb.Hash, len(names))
	for _, name := range names {
		w.Bytes([]byte(name))
		w.Bytes(nil)
	}
	return w.Seal()
}
