package db_test

import (
	"context"
	"fmt"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

func ExampleStore_Events() {
	store := example()
	events, err := store.Events(db.EventOptions{Classes: structures.ClassList | structures.ClassGeneric, Match: "job*"})
	check(err)

	jobs := store.List("jobs")
	_, err = jobs.PushBack([]byte("mow the lawn"))
	check(err)
	_, err = jobs.PopFront()
	check(err)
	check(store.Close()) // ends the loop; without that it waits for more, or for its context

	for event := range events.All(context.Background()) {
		fmt.Println(event.Kind, event.Key)
	}
	// Output:
	// rpush jobs
	// lpop jobs
	// del jobs
}
