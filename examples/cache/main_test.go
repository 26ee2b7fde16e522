package main

import (
	"errors"
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
	// miss: This is /news.
	// hit: This is /news.
}

// The backend is asked once for many requests, again when the page has expired, and again after an error.
func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := db.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		var asked atomic.Int32
		down := errors.New("down")
		c := &cache{store: store, keep: time.Minute, asking: map[string]*sync.Mutex{}, backend: func(string) ([]byte, error) {
			if asked.Add(1) == 1 {
				return nil, down
			}
			return []byte("text"), nil
		}}
		if _, _, err := c.page("a"); !errors.Is(err, down) {
			t.Error(err)
		}
		for range 2 {
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if text, _, err := c.page("a"); string(text) != "text" || err != nil {
						t.Errorf("%q, %v", text, err)
					}
				})
			}
			wg.Wait()
			time.Sleep(2 * time.Minute)
		}
		if n := asked.Load(); n != 3 || len(c.asking) != 0 {
			t.Errorf("asked %d times, %d left", n, len(c.asking))
		}
	})
}

// A request that finds neither the page nor its lock, because the page comes in between, leaves no lock.
func TestPageComesInBetween(t *testing.T) {
	store, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	c := &cache{store: store, keep: time.Minute, asking: map[string]*sync.Mutex{}, backend: func(string) ([]byte, error) {
		return nil, errors.New("asked")
	}}
	c.mu.Lock()
	var wg sync.WaitGroup
	wg.Go(func() {
		if text, _, err := c.page("a"); string(text) != "text" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
	time.Sleep(50 * time.Millisecond) // it has looked for the page, and waits for c.mu
	if err := store.String("page:a").Put([]byte("text")); err != nil {
		t.Error(err)
	}
	c.mu.Unlock()
	wg.Wait()
	if len(c.asking) != 0 {
		t.Errorf("%d locks are left", len(c.asking))
	}
}
