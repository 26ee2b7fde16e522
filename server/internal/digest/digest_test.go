package digest_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/db/dbtest"
	"github.com/stavedb/stave/server/internal/digest"
)

// fill puts equal data into a store, in one order or the other.
func fill(t *testing.T, store *db.Store, backwards bool) {
	t.Helper()
	steps := []func(tx *db.Tx) error{
		func(tx *db.Tx) error { return tx.String("s").Put([]byte("v")) },
		func(tx *db.Tx) error { _, err := tx.Set("set").Add("a", "b", "c"); return err },
		func(tx *db.Tx) error { _, err := tx.Hash("h").Put("f", []byte("1")); return err },
		func(tx *db.Tx) error { _, err := tx.Hash("h").Put("g", []byte("2")); return err },
		func(tx *db.Tx) error { _, err := tx.SortedSet("z").Add(db.Scored{Member: "m", Score: 1.5}); return err },
		func(tx *db.Tx) error { _, err := tx.SortedSet("z").Add(db.Scored{Member: "n", Score: 2}); return err },
		func(tx *db.Tx) error { _, err := tx.List("l").PushBack([]byte("x"), []byte("y")); return err },
		func(tx *db.Tx) error { return entry(tx, 1, "v") },
	}
	for i := range steps {
		step := steps[i]
		if backwards {
			step = steps[len(steps)-1-i]
		}
		if err := store.Update(step); err != nil {
			t.Fatal(err)
		}
	}
}

// entry adds an entry to a stream.
func entry(tx *db.Tx, seq uint64, value string) error {
	_, err := tx.Stream("x").AddWith(db.StreamAddOptions{ID: db.StreamID{Ms: 1, Seq: seq}}, db.Field{Name: "f", Value: []byte(value)})
	return err
}

func of(t *testing.T, store *db.Store) string {
	t.Helper()
	var d digest.Digest
	if err := d.AddStore(store); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(d[:])
}

func TestEqualDataHaveEqualDigests(t *testing.T) {
	a, b := dbtest.New(t), dbtest.New(t)
	if got := of(t, a); got != "0000000000000000000000000000000000000000" {
		t.Errorf("the digest of nothing is %s", got)
	}
	fill(t, a, false)
	fill(t, b, true)
	full := of(t, a)
	if other := of(t, b); full != other {
		t.Errorf("equal data have the digests %s and %s", full, other)
	}
	seen := map[string]string{full: "the whole"}
	for name, change := range map[string]func(tx *db.Tx) error{
		"another value":  func(tx *db.Tx) error { return tx.String("s").Put([]byte("w")) },
		"another score":  func(tx *db.Tx) error { _, err := tx.SortedSet("z").Add(db.Scored{Member: "m", Score: 3}); return err },
		"another member": func(tx *db.Tx) error { _, err := tx.Set("set").Add("d"); return err },
		"another field":  func(tx *db.Tx) error { _, err := tx.Hash("h").Put("f", []byte("2")); return err },
		"a list turned":  func(tx *db.Tx) error { _, err := tx.List("l").PushFront([]byte("y")); return err },
		"a deadline":     func(tx *db.Tx) error { _, err := tx.Key("s").Expire(time.Hour); return err },
		"another entry":  func(tx *db.Tx) error { return entry(tx, 2, "v") },
		"another value of an entry": func(tx *db.Tx) error {
			if _, err := tx.Key("x").Delete(); err != nil {
				return err
			}
			return entry(tx, 1, "w")
		},
		"one key more": func(tx *db.Tx) error { return tx.String("t").Put([]byte("v")) },
		"another database": func(tx *db.Tx) error {
			other, err := tx.Use(1)
			if err != nil {
				return err
			}
			return other.String("t").Put([]byte("v"))
		},
	} {
		if err := b.Update(change); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := of(t, b)
		if like := seen[got]; like != "" {
			t.Errorf("%s: the digest is that of %s", name, like)
		}
		seen[got] = name
	}
}
