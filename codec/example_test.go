package codec_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/stavedb/stave/codec"
	"github.com/stavedb/stave/db"
)

// example opens a store in memory; a program would open a directory.
func example() *db.Store {
	store, err := db.OpenMemory(nil)
	check(err)
	return store
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

type User struct {
	Name string `json:"name"`
	Born int    `json:"born"`
}

func ExampleHash() {
	store := example()
	defer store.Close()

	users := codec.HashOf[User](store.Hash("users"))
	_, err := users.Put("ada", User{Name: "Ada", Born: 1815})
	check(err)
	ada, err := users.Get("ada")
	check(err)
	fmt.Println(ada.Name, ada.Born)

	_, err = users.Get("bob")
	fmt.Println(errors.Is(err, db.ErrNotFound))

	n, err := users.Len() // the handle's other methods are there as well
	check(err)
	raw, err := store.Hash("users").Get("ada")
	check(err)
	fmt.Println(n, string(raw))

	for f, err := range users.All() {
		check(err)
		fmt.Println(f.Name, f.Value.Born)
	}
	// Output:
	// Ada 1815
	// true
	// 1 {"name":"Ada","born":1815}
	// ada 1815
}

// Within a transaction reading, changing and writing are one step.
func ExampleHash_transaction() {
	store := example()
	defer store.Close()

	_, err := codec.HashOf[User](store.Hash("users")).Put("ada", User{Name: "Ada"})
	check(err)
	check(store.UpdateKeys([]string{"users"}, func(tx *db.Tx) error {
		users := codec.HashOf[User](tx.Hash("users"))
		ada, err := users.Get("ada")
		if err != nil {
			return err
		}
		ada.Born = 1815
		_, err = users.Put("ada", ada)
		return err
	}))
	ada, err := codec.HashOf[User](store.Hash("users")).Get("ada")
	check(err)
	fmt.Println(ada)
	// Output: {Ada 1815}
}

func ExampleString() {
	store := example()
	defer store.Close()

	session := codec.StringOf[User](store.String("session:77"))
	check(session.Put(User{Name: "Ada"}, db.TTL(time.Hour), db.IfAbsent))
	user, err := session.Get()
	check(err)
	fmt.Println(user.Name)

	check(store.String("session:77").Put([]byte("not JSON")))
	_, err = session.Get()
	var failed *codec.DecodeError
	fmt.Println(errors.As(err, &failed), string(failed.Data))
	// Output:
	// Ada
	// true not JSON
}

func ExampleList() {
	store := example()
	defer store.Close()

	type job struct {
		File  string
		Pages int
	}
	jobs := codec.ListOf[job](store.List("jobs"))
	_, err := jobs.PushBack(job{"a.pdf", 3}, job{"b.pdf", 12})
	check(err)
	next, err := jobs.PopFront()
	check(err)
	fmt.Println(next)
	// Output: {a.pdf 3}
}

// A job stays in a list of those that are being done until it is done, so that a crash loses none.
func ExampleList_MoveWait() {
	store := example()
	defer store.Close()

	type job struct{ File string }
	jobs, doing := codec.ListOf[job](store.List("jobs")), codec.ListOf[job](store.List("doing"))
	_, err := jobs.PushBack(job{"a.pdf"})
	check(err)

	next, err := jobs.MoveWait(context.Background(), "doing", db.Front, db.Back)
	check(err)
	fmt.Println("doing", next.File)
	n, err := doing.Remove(1, next)
	check(err)
	fmt.Println(n, "done")
	// Output:
	// doing a.pdf
	// 1 done
}

// A session lives for an hour after its last use.
func ExampleString_GetAndExpire() {
	store := example()
	defer store.Close()

	session := codec.StringOf[User](store.String("session:77"))
	check(session.Put(User{Name: "Ada"}, db.TTL(time.Hour)))
	user, err := session.GetAndExpire(time.Hour)
	check(err)
	fmt.Println(user.Name)

	user, err = session.GetAndDelete()
	check(err)
	_, err = session.Get()
	fmt.Println(user.Name, "has left:", errors.Is(err, db.ErrNotFound))
	// Output:
	// Ada
	// Ada has left: true
}

func ExampleStream() {
	store := example()
	defer store.Close()

	type order struct {
		Item string
		Cent int
	}
	orders := codec.StreamOf[order](store.Stream("orders"))
	mailers := orders.Group("mailers")
	check(mailers.Create(db.StreamGroupStart{Make: true}))
	for _, o := range []order{{"lamp", 2900}, {"desk", 19900}} {
		_, err := orders.Add(o)
		check(err)
	}

	entries, err := mailers.Read("worker 1", 10)
	check(err)
	for _, e := range entries {
		fmt.Println("a mail about the", e.Value.Item)
		_, err := mailers.Ack(e.ID)
		check(err)
	}
	// Output:
	// a mail about the lamp
	// a mail about the desk
}

// upper is a codec of one's own.
type upper struct{}

func (upper) Marshal(v any) ([]byte, error) { return []byte(strings.ToUpper(v.(string))), nil }

func (upper) Unmarshal(data []byte, v any) error {
	*v.(*string) = string(data)
	return nil
}

func ExampleCodec() {
	store := example()
	defer store.Close()

	loud := codec.String[string]{String: store.String("greeting"), Codec: upper{}}
	check(loud.Put("hello"))
	fmt.Println(loud.Get())
	// Output: HELLO <nil>
}
