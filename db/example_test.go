package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stavedb/stave/db"
)

// Written values are there when the directory is opened again, deadlines included.
func ExampleOpen() {
	temp, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(temp)
	dir := filepath.Join(temp, "data") // Open makes it.

	store, err := db.Open(dir, nil)
	check(err)
	check(store.String("greeting").Put([]byte("hi"), db.TTL(time.Hour)))
	_, err = store.SortedSet("board").Add(db.Scored{Member: "Ada", Score: 42}, db.Scored{Member: "Mary", Score: 37})
	check(err)
	check(store.Close())

	store, err = db.Open(dir, nil)
	check(err)
	defer store.Close()
	value, err := store.String("greeting").Get()
	check(err)
	left, err := store.Key("greeting").TTL()
	check(err)
	rank, err := store.SortedSet("board").RevRank("Ada")
	check(err)
	fmt.Printf("%s, for %v; Ada is number %d\n", value, left.Round(time.Minute), rank+1)
	// Output:
	// hi, for 1h0m0s; Ada is number 1
}

// A backup is the store as of one moment, and a store of its own.
func ExampleStore_Backup() {
	temp, err := os.MkdirTemp("", "example-")
	check(err)
	defer os.RemoveAll(temp)
	store, err := db.Open(filepath.Join(temp, "data"), nil)
	check(err)
	defer store.Close()
	check(store.String("greeting").Put([]byte("hi")))
	_, err = store.Backup(context.Background(), filepath.Join(temp, "saved"))
	check(err)
	check(store.String("greeting").Put([]byte("hello")))

	saved, err := db.Open(filepath.Join(temp, "saved"), nil)
	check(err)
	defer saved.Close()
	value, err := saved.String("greeting").Get()
	check(err)
	fmt.Printf("%s\n", value)
	// Output:
	// hi
}

// A job goes to three structures in one commit: it is in all of them or, after an error or a panic, in none.
func ExampleStore_Update() {
	store := example()
	defer store.Close()

	enqueue := func(id string, due float64, payload string) error {
		return store.Update(func(tx *db.Tx) error {
			if _, err := tx.List("jobs").PushBack([]byte(payload)); err != nil {
				return err
			}
			if _, err := tx.SortedSet("due").Add(db.Scored{Member: id, Score: due}); err != nil {
				return err
			}
			isNew, err := tx.Set("ids").Add(id)
			if err == nil && isNew == 0 {
				return fmt.Errorf("job %s is there already", id)
			}
			return err
		})
	}
	check(enqueue("a", 100, "water the plants"))
	fmt.Println(enqueue("a", 200, "feed the cat"))

	jobs, err := store.List("jobs").Range(0, -1)
	check(err)
	due, err := store.SortedSet("due").Score("a")
	check(err)
	fmt.Printf("%s, due at %v\n", jobs, due)
	// Output:
	// job a is there already
	// [water the plants], due at 100
}

// All that a View reads is from one moment, in several calls and through iterators.
func ExampleStore_View() {
	store := example()
	defer store.Close()

	_, err := store.SortedSet("due").Add(
		db.Scored{Member: "a", Score: 100}, db.Scored{Member: "b", Score: 200}, db.Scored{Member: "c", Score: 300},
	)
	check(err)
	_, err = store.Hash("titles").PutAll(
		db.Field{Name: "a", Value: []byte("water the plants")}, db.Field{Name: "b", Value: []byte("feed the cat")},
	)
	check(err)

	err = store.View(func(tx *db.Tx) error {
		for due, err := range tx.SortedSet("due").All(db.ScoreRange{Max: 300, Reverse: true}) {
			if err != nil {
				return err
			}
			title, err := tx.Hash("titles").Get(due.Member)
			if errors.Is(err, db.ErrNotFound) {
				title = []byte("untitled")
			} else if err != nil {
				return err
			}
			fmt.Printf("%v: %s\n", due.Score, title)
		}
		return nil // A read error has ended the loop; View returns it.
	})
	check(err)
	// Output:
	// 300: untitled
	// 200: feed the cat
	// 100: water the plants
}

// UpdateKeys is an Update that leaves all other keys to others meanwhile.
func ExampleStore_UpdateKeys() {
	store := example()
	defer store.Close()

	check(store.Keyspace().Put(db.Pair{Key: "ada", Value: []byte("100")}, db.Pair{Key: "mary", Value: []byte("20")}))
	transfer := func(from, to string, amount int64) error {
		return store.UpdateKeys([]string{from, to}, func(tx *db.Tx) error {
			left, err := tx.String(from).Incr(-amount)
			if err != nil {
				return err
			}
			if left < 0 {
				return fmt.Errorf("%s has not that much", from)
			}
			_, err = tx.String(to).Incr(amount)
			return err
		})
	}
	fmt.Println(transfer("ada", "mary", 70))
	fmt.Println(transfer("ada", "mary", 70))

	values, err := store.Keyspace().Get("ada", "mary")
	check(err)
	fmt.Printf("%s\n", values)
	// Output:
	// <nil>
	// ada has not that much
	// [30 90]
}

// Namespaces keep equal keys apart; a transaction may span several.
func ExampleStore_Use() {
	store := example()
	defer store.Close()

	archive, err := store.Use(1)
	check(err)
	check(store.String("letter").Put([]byte("new")))
	check(archive.String("letter").Put([]byte("old")))

	err = store.Update(func(tx *db.Tx) error {
		letter, err := tx.String("letter").Get()
		if err != nil {
			return err
		}
		there, err := tx.Use(1)
		if err != nil {
			return err
		}
		if err := there.String("letter:2").Put(letter); err != nil {
			return err
		}
		_, err = tx.Key("letter").Delete()
		return err
	})
	check(err)
	fmt.Println(store.Len(), archive.Len())
	// Output:
	// 0 2
}
