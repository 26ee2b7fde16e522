package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
)

func Example() {
	main()
	// Output:
	// signed in: ada
	// signed out: true
}

// A session lives as long as it is used, and half an hour more.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := db.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		token, err := signIn(store, "ada")
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			time.Sleep(idle - time.Second)
			if user, err := use(store, token); user != "ada" || err != nil {
				t.Fatalf("%q, %v", user, err)
			}
		}
		time.Sleep(idle)
		if _, err := use(store, token); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%v", err)
		}
		if existed, err := signOut(store, token); existed || err != nil || store.Len() != 0 {
			t.Errorf("%v, %v, %d keys left", existed, err, store.Len())
		}
	})
}
