package db_test

import (
	"context"
	"fmt"

	"github.com/stavedb/stave/db"
)

func ExampleStore_Events() {
	store := example()
	events, err := store.Events(db.EventOptions{Classes: db.ClassList | db.ClassGeneric, Match: "job*"})
	check(err)

	jobs := store.List("jobs")
	_, err = jobs.PushBack([]byte("mow the lawn"))
	check(err)
	_, err = jobs.PopFront()
	check(err)
	check(store.Close()) // ends the loop; without that it waits for more, or for its context

	for event := range events.All(context.Background()) {
		fmt.Println(event.Kind, event.Key)
		switch event.Kind {
		case db.EventLPush, db.EventRPush:
			fmt.Println("there is something to do")
		case db.EventDel:
			fmt.Println("all is done")
		}
	}
	// Output:
	// rpush jobs
	// there is something to do
	// lpop jobs
	// del jobs
	// all is done
}

func ExampleKeyspace_Range() {
	store, err := db.OpenMemory(&db.Options{OrderedKeys: true})
	check(err)
	defer store.Close()

	for _, key := range []string{"user:2", "session:9", "user:1", "user:10"} {
		check(store.String(key).Put(nil))
	}
	for k, err := range store.Keyspace().Range(db.KeyRange{Prefix: "user:", Reverse: true}) {
		check(err)
		fmt.Println(k.Key, k.Type)
	}
	n, err := store.Keyspace().DeleteRange(db.KeyPrefix("user:"))
	check(err)
	fmt.Println(n, "deleted")
	// Output:
	// user:2 string
	// user:10 string
	// user:1 string
	// 3 deleted
}
