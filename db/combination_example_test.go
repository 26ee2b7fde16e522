package db_test

import (
	"fmt"

	"github.com/stavedb/stave/db"
)

// A queue whose jobs are kept in a second list until they are done.
func ExampleList_Move() {
	store := example()
	defer store.Close()

	_, err := store.List("jobs").PushBack([]byte("wash"), []byte("dry"))
	check(err)
	job, err := store.List("jobs").Move("working", db.Front, db.Back)
	check(err)
	fmt.Printf("%s\n", job)
	_, err = store.List("working").Remove(1, job)
	check(err)
	// Output:
	// wash
}

func ExampleSortedSet_PutCombined() {
	store := example()
	defer store.Close()

	_, err := store.SortedSet("monday").Add(db.Scored{Member: "Ada", Score: 3}, db.Scored{Member: "Mary", Score: 5})
	check(err)
	_, err = store.SortedSet("tuesday").Add(db.Scored{Member: "Ada", Score: 4})
	check(err)
	n, err := store.SortedSet("week").PutCombined(db.Combination{Op: db.UnionOf, Keys: []string{"monday", "tuesday"}})
	check(err)
	best, err := store.SortedSet("week").Range(db.RankRange{Stop: -1, Reverse: true})
	check(err)
	fmt.Println(n, best)
	// Output:
	// 2 [{Ada 7} {Mary 5}]
}
