package db_test

import (
	"fmt"
	"testing"

	"github.com/stavedb/stave/db"
)

func TestSort(t *testing.T) {
	both(t, func(t *testing.T, k keys) {
		_, err := k.Set("ids").Add("1", "2", "3")
		must(t, err)
		must(t, k.Keyspace().Put(db.Pair{Key: "w3", Value: []byte("-1")}, db.Pair{Key: "n2", Value: []byte("two")}))
		o := db.SortOptions{By: "w*", Get: []string{"#", "n*"}}
		equal(t, "rows", fmt.Sprintf("%q", ok[[][]byte](t)(k.Key("ids").Sort(o))), `["3" "" "1" "" "2" "two"]`)
		equal(t, "in their own order", fmt.Sprintf("%s", ok[[][]byte](t)(k.Key("ids").Sort(db.SortOptions{Descending: true}))), "[3 2 1]")
		equal(t, "stored", ok[int](t)(k.Key("ids").SortInto("list", o)), 6)
		equal(t, "stored", ok[int](t)(k.Key("ids").SortInto("plain", db.SortOptions{})), 3)
		equal(t, "list", content(t, k, "list"), `["3" "" "1" "" "2" "two"]`)
	})
}

func ExampleKey_Sort() {
	store := example()
	defer store.Close()

	_, err := store.List("jobs").PushBack([]byte("7"), []byte("12"))
	check(err)
	check(store.Keyspace().Put(db.Pair{Key: "priority:7", Value: []byte("2")}, db.Pair{Key: "priority:12", Value: []byte("1")}))
	_, err = store.Hash("job:12").Put("title", []byte("water the plants"))
	check(err)
	titles, err := store.Key("jobs").Sort(db.SortOptions{By: "priority:*", Get: []string{"job:*->title"}, Limited: true, Count: 1})
	check(err)
	fmt.Printf("%s\n", titles)
	// Output: [water the plants]
}
