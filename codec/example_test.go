package codec_test

import (
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
