package db_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

func TestStringEdits(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		s := k.String("s")
		for name, edit := range map[string]func() ([]byte, error){
			"GetAndDelete":   s.GetAndDelete,
			"GetAndPersist":  s.GetAndPersist,
			"GetAndExpire":   func() ([]byte, error) { return s.GetAndExpire(time.Hour) },
			"GetAndExpireAt": func() ([]byte, error) { return s.GetAndExpireAt(time.Now().Add(time.Hour)) },
		} {
			if value, err := edit(); value != nil || !errors.Is(err, db.ErrNotFound) {
				t.Errorf("%s of nothing = %q, %v", name, value, err)
			}
			must(t, s.Put([]byte("v")))
			if value, err := edit(); string(value) != "v" || err != nil {
				t.Errorf("%s = %q, %v", name, value, err)
			}
			ttl, err := k.Key("s").TTL()
			switch name {
			case "GetAndDelete":
				equal(t, "deleted", errors.Is(err, db.ErrNotFound), true)
			case "GetAndPersist":
				equal(t, "TTL", ttl, db.NoTTL)
			default:
				equal(t, "TTL of about an hour", ttl > 59*time.Minute && ttl < 61*time.Minute, true)
			}
			_, err = k.Key("s").Delete()
			must(t, err)
		}
		must(t, s.Put([]byte("v")))
		if _, err := s.GetAndExpire(0); err != structures.ErrExpireTime {
			t.Errorf("GetAndExpire(0): %v", err)
		}
		equal(t, "length", ok[int](t)(s.SetRange(3, []byte("w"))), 4)
		value, err := s.Get()
		must(t, err)
		equal(t, "value", string(value), "v\x00\x00w")
	})
}

func TestIncrFloat(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		for _, incr := range []func(float64) (float64, error){
			k.String("s").IncrFloat,
			func(delta float64) (float64, error) { return k.Hash("h").IncrFloat("f", delta) },
		} {
			equal(t, "first", ok[float64](t)(incr(0.1)), 0.1)
			equal(t, "second", ok[float64](t)(incr(0.2)), 0.3)
			if _, err := incr(math.NaN()); err != structures.ErrNotFloat {
				t.Errorf("NaN: %v", err)
			}
			if _, err := incr(math.Inf(1)); err != structures.ErrSumInfinite && err != structures.ErrNaNOrInfinity {
				t.Errorf("infinity: %v", err)
			}
			equal(t, "beyond", ok[float64](t)(incr(math.MaxFloat64)), math.MaxFloat64)
			equal(t, "what only a long double holds", ok[float64](t)(incr(math.MaxFloat64)), math.Inf(1))
		}
	})
}

func ExampleKeyspace_LongestCommonSubsequence() {
	store := example()
	defer store.Close()

	check(store.Keyspace().Put(db.Pair{Key: "a", Value: []byte("ohmytext")}, db.Pair{Key: "b", Value: []byte("mynewtext")}))
	lcs, err := store.Keyspace().LongestCommonSubsequence("a", "b")
	check(err)
	fmt.Printf("%s %v\n", lcs.Text, lcs.Matches)
	// Output: mytext [{4 5 4} {2 0 2}]
}

func ExampleString_IncrFloat() {
	store := example()
	defer store.Close()

	price := store.String("price")
	_, err := price.IncrFloat(0.1)
	check(err)
	sum, err := price.IncrFloat(0.2)
	check(err)
	fmt.Println(sum)
	// Output: 0.3
}
