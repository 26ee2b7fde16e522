package db_test

import (
	"context"
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

// A worker that waits for jobs, and one that leaves some.
func ExampleList_PopFrontWait() {
	store := example()
	defer store.Close()

	done := make(chan struct{})
	go func() {
		defer close(done)
		job, err := store.List("jobs").PopFrontWait(context.Background())
		check(err)
		fmt.Printf("got %s\n", job)
	}()
	_, err := store.List("jobs").PushBack([]byte("wash"))
	check(err)
	<-done
	// Output:
	// got wash
}

// A result computed outside of a transaction is written only if none of its sources has changed.
func ExampleStore_Watch() {
	store := example()
	defer store.Close()

	check(store.String("price").Put([]byte("10")))
	watch, err := store.Watch("price")
	check(err)
	defer watch.Close()
	price, err := store.String("price").Get()
	check(err)
	check(store.String("price").Put([]byte("12"))) // by another client
	err = store.UpdateKeys([]string{"price", "bill"}, func(tx *db.Tx) error {
		changed, err := watch.Changed(tx)
		if err != nil || changed {
			fmt.Println("begin again")
			return err
		}
		return tx.String("bill").Put(price)
	})
	check(err)
	// Output:
	// begin again
}

func ExampleGeo() {
	store := example()
	defer store.Close()

	cities := store.Geo("cities")
	_, err := cities.Add(
		db.GeoMember{Member: "Palermo", Point: db.GeoPoint{Longitude: 13.361389, Latitude: 38.115556}},
		db.GeoMember{Member: "Catania", Point: db.GeoPoint{Longitude: 15.087269, Latitude: 37.502669}},
	)
	check(err)
	near, err := cities.Search(db.GeoSearch{
		Centre: db.GeoPoint{Longitude: 15, Latitude: 37},
		Shape:  db.GeoShape{Radius: 200_000},
		Order:  db.NearestFirst,
	})
	check(err)
	for _, city := range near {
		fmt.Printf("%s, %.0f km\n", city.Member, city.Distance/1000)
	}
	// Output:
	// Catania, 56 km
	// Palermo, 190 km
}
