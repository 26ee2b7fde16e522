package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

func Example() {
	main()
	// Output:
	// order 7 paid
	// order 8 paid
	// order 7 sent
	// mail: order 7 is paid
	// mail: order 8 is paid
	// mail: order 7 is sent
}

// A reader goes on where it has come to; what another one has read makes no difference.
func TestFollowGoesOn(t *testing.T) {
	store, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	read := func(reader string, n int) (got string) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		err := follow(ctx, store, reader, func(order, what string) error {
			if got += order + what + " "; len(got) == 3*n {
				stop()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(got, err)
		}
		return got
	}
	for i := range 5 {
		if _, err := record(store, fmt.Sprint(i), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if got := read("x", 2) + read("x", 3) + read("y", 5); got != "0a 1a 2a 3a 4a 0a 1a 2a 3a 4a " {
		t.Error(got)
	}
}

// A range of time has its begin, and not its end.
func TestBetween(t *testing.T) {
	store, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	id, err := record(store, "1", "a")
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(int64(id.Ms))
	for _, test := range []struct{ begin, end, want int }{{0, 1, 1}, {-5, 0, 0}, {1, 9, 0}, {-1, 2, 1}} {
		n := 0
		ms := func(d int) time.Time { return at.Add(time.Duration(d) * time.Millisecond) }
		if err := between(store, ms(test.begin), ms(test.end), func(time.Time, string, string) { n++ }); n != test.want || err != nil {
			t.Errorf("%v: %d, %v", test, n, err)
		}
	}
}
