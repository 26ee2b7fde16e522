package db_test

import (
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/stavedb/stave/db"
)

// example opens a store in memory; a program would open a directory.
func example() *db.Store {
	store, err := db.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	return store
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleString() {
	store := example()
	defer store.Close()

	greeting := store.String("greeting")
	check(greeting.Put([]byte("hi"), db.TTL(time.Hour), db.IfAbsent))
	err := greeting.Put([]byte("hello"), db.IfAbsent)
	fmt.Println(errors.Is(err, db.ErrExists))

	value, err := greeting.Get()
	check(err)
	fmt.Printf("%s\n", value)

	visits, err := store.String("visits").Incr(1)
	check(err)
	fmt.Println(visits)
	// Output:
	// true
	// hi
	// 1
}

// A lock: a token that only its owner knows is put if there is none, prolonged, and deleted if it is still there.
func ExampleIfEqual() {
	store := example()
	defer store.Close()

	lock, token := store.String("lock"), []byte("5f1c")
	check(lock.Put(token, db.IfAbsent, db.TTL(time.Minute)))
	check(lock.Put(token, db.IfEqual(token), db.TTL(time.Minute)))
	fmt.Println(errors.Is(lock.Put([]byte("77aa"), db.IfEqual([]byte("77aa"))), db.ErrMismatch))

	released, err := store.Key("lock").Delete(db.IfEqual(token))
	check(err)
	fmt.Println(released)
	// Output:
	// true
	// true
}

func ExampleHash() {
	store := example()
	defer store.Close()

	user := store.Hash("user:1")
	added, err := user.PutAll(
		db.Field{Name: "name", Value: []byte("Ada")},
		db.Field{Name: "born", Value: []byte("1815")},
	)
	check(err)
	fmt.Println(added)

	name, err := user.Get("name")
	check(err)
	fmt.Printf("%s\n", name)

	_, err = user.Get("email")
	fmt.Println(errors.Is(err, db.ErrNotFound))
	// Output:
	// 2
	// Ada
	// true
}

// Each step of a loop yields a field, or the error that ends the loop.
func ExampleHash_All() {
	store := example()
	defer store.Close()

	_, err := store.Hash("user:1").Put("name", []byte("Ada"))
	check(err)
	for f, err := range store.Hash("user:1").All() {
		check(err)
		fmt.Printf("%s: %s\n", f.Name, f.Value)
	}
	// Output:
	// name: Ada
}

// A field may have a deadline of its own.
func ExampleHash_ExpireFields() {
	store := example()
	defer store.Close()

	login := store.Hash("login:1")
	check(login.PutWith([]db.Field{{Name: "code", Value: []byte("1815")}}, db.TTL(5*time.Minute)))
	_, err := login.Put("user", []byte("Ada"))
	check(err)
	results, err := login.ExpireFields(time.Hour, []string{"code", "none"}, db.IfLess)
	check(err)
	fmt.Println(results[0] == db.FieldUnchanged, results[1] == db.FieldMissing)

	ttls, err := login.FieldTTLs("user", "none")
	check(err)
	fmt.Println(ttls[0] == db.NoTTL, ttls[1] == db.NoField)
	// Output:
	// true true
	// true true
}

func ExampleList() {
	store := example()
	defer store.Close()

	jobs := store.List("jobs")
	_, err := jobs.PushBack([]byte("wash"), []byte("dry"), []byte("fold"))
	check(err)
	job, err := jobs.PopFront()
	check(err)
	rest, err := jobs.Range(0, -1)
	check(err)
	fmt.Printf("%s, then %s\n", job, rest)
	// Output:
	// wash, then [dry fold]
}

func ExampleSet() {
	store := example()
	defer store.Close()

	_, err := store.Set("likes:ada").Add("maths", "music", "horses")
	check(err)
	_, err = store.Set("likes:mary").Add("maths", "stars")
	check(err)
	both, err := store.Set("likes:ada").Inter("likes:mary")
	check(err)
	all, err := store.Set("likes:ada").Union("likes:mary")
	check(err)
	slices.Sort(all)
	fmt.Println(both, all)
	// Output:
	// [maths] [horses maths music stars]
}

func ExampleSortedSet() {
	store := example()
	defer store.Close()

	board := store.SortedSet("board")
	_, err := board.Add(
		db.Scored{Member: "Ada", Score: 42},
		db.Scored{Member: "Mary", Score: 37},
		db.Scored{Member: "Grace", Score: 51},
	)
	check(err)
	rank, err := board.RevRank("Ada")
	check(err)
	best, err := board.Range(db.RankRange{Start: 0, Stop: 1, Reverse: true})
	check(err)
	fmt.Println(rank, best)
	// Output:
	// 1 [{Grace 51} {Ada 42}]
}

// In a transaction the first read error ends the loop and comes back from View.
func ExampleSortedSet_All() {
	store := example()
	defer store.Close()

	_, err := store.SortedSet("due").Add(
		db.Scored{Member: "water the plants", Score: 100},
		db.Scored{Member: "feed the cat", Score: 200},
		db.Scored{Member: "call home", Score: 300},
	)
	check(err)
	const now = 200
	err = store.View(func(tx *db.Tx) error {
		for due, err := range tx.SortedSet("due").All(db.Scores(0, now)) {
			if err != nil {
				return err
			}
			fmt.Println(due.Score, due.Member)
		}
		return nil
	})
	check(err)
	// Output:
	// 100 water the plants
	// 200 feed the cat
}

func ExampleKey_TTL() {
	store := example()
	defer store.Close()

	check(store.String("session").Put([]byte("token")))
	left, err := store.Key("session").TTL()
	check(err)
	fmt.Println(left == db.NoTTL)

	_, err = store.Key("session").Expire(time.Hour)
	check(err)
	left, err = store.Key("session").TTL()
	check(err)
	fmt.Println(left.Round(time.Minute))
	// Output:
	// true
	// 1h0m0s
}

func ExampleKeyspace_Scan() {
	store := example()
	defer store.Close()

	keys := store.Keyspace()
	check(keys.Put(
		db.Pair{Key: "user:1", Value: []byte("Ada")},
		db.Pair{Key: "user:2", Value: []byte("Mary")},
		db.Pair{Key: "visits", Value: []byte("7")},
	))
	var users []string
	for cursor := uint64(0); ; {
		page, next, err := keys.Scan(cursor, db.KeyScanOptions{Match: "user:*"})
		check(err)
		for _, info := range page {
			users = append(users, info.Key)
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	slices.Sort(users)
	fmt.Println(users)
	// Output:
	// [user:1 user:2]
}
