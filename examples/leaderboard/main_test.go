package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stavedb/stave/db"
)

func Example() {
	main()
	// Output:
	// leaders: [{Ada 120} {Cy 95}]
	// Di is number 3 of [{Cy 95} {Di 90} {Bob 80}]
}

func TestAround(t *testing.T) {
	store, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, _, err := around(store, "nobody", 1); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("%v", err)
	}
	for i := range 100 {
		if _, err := win(store, fmt.Sprintf("p%02d", i), float64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for player, want := range map[string]string{
		"p99": "1 [{p99 99} {p98 98} {p97 97}]",
		"p50": "50 [{p52 52} {p51 51} {p50 50} {p49 49} {p48 48}]",
		"p00": "100 [{p02 2} {p01 1} {p00 0}]",
	} {
		rank, players, err := around(store, player, 2)
		if got := fmt.Sprint(rank, players); got != want || err != nil {
			t.Errorf("%s: %s, %v", player, got, err)
		}
	}
}
