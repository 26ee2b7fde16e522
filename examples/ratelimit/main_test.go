package main

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
)

func Example() {
	main()
	// Output:
	// call 1 allowed: true
	// call 2 allowed: true
	// call 3 allowed: true
	// call 4 allowed: false
}

// The window slides: a call is forgotten when it is as old as the window, and then another one is allowed.
func TestWindowSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := db.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		l := limiter{store, 2, time.Minute}
		for i, want := range []bool{true, true, false, true, true, false} { // at 0, 20, 40, 60, 80 and 100 seconds
			if ok, err := l.allow("ann"); ok != want || err != nil {
				t.Errorf("call %d: %v, %v", i, ok, err)
			}
			time.Sleep(20 * time.Second)
		}
		time.Sleep(time.Minute)
		if n := store.Len(); n != 0 {
			t.Errorf("%d keys of a quiet client", n)
		}
	})
}

// Calls at once share the limit, and one client does not use up another's.
func TestCallsAtOnce(t *testing.T) {
	store, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l := limiter{store, 10, time.Hour}
	var allowed atomic.Int64
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			ok, err := l.allow("ann")
			if err != nil {
				t.Error(err)
			}
			if ok {
				allowed.Add(1)
			}
		})
	}
	wait.Wait()
	if n := allowed.Load(); n != 10 {
		t.Errorf("%d calls were allowed", n)
	}
	if ok, err := l.allow("bob"); !ok || err != nil {
		t.Errorf("another client: %v, %v", ok, err)
	}
}
