// Cache is an HTTP server that keeps answers of a slow backend for a while.
//
// An answer is a key with a time to live, so nobody has to clean up, and it outlives a restart of the server. Many
// requests for one page that is not there ask the backend once.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/stavedb/stave/db"
)

// A cache answers from a store what it can, and asks backend for the rest.
type cache struct {
	store   *db.Store
	backend func(page string) ([]byte, error)
	keep    time.Duration

	mu     sync.Mutex
	asking map[string]*sync.Mutex // pages that somebody asks the backend for
}

// ServeHTTP answers with a page.
func (c *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, found, err := c.page(r.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("X-Cache", map[bool]string{true: "hit", false: "miss"}[found])
	if _, err := w.Write(text); err != nil {
		log.Print(err) // the client has gone
	}
}

// page returns a page, and whether it was in the cache.
func (c *cache) page(name string) (text []byte, found bool, err error) {
	key := c.store.String("page:" + name)
	if text, err = key.Get(); !errors.Is(err, db.ErrNotFound) {
		return text, err == nil, err
	}
	c.mu.Lock()
	one := c.asking[name]
	if one == nil {
		one = new(sync.Mutex)
		c.asking[name] = one
	}
	c.mu.Unlock()
	one.Lock()
	defer func() {
		c.mu.Lock()
		if c.asking[name] == one { // else one that was made after its removal
			delete(c.asking, name)
		}
		c.mu.Unlock()
		one.Unlock()
	}()
	if text, err = key.Get(); !errors.Is(err, db.ErrNotFound) { // whoever had the lock before has asked
		return text, err == nil, err
	}
	if text, err = c.backend(name); err == nil {
		err = key.Put(text, db.TTL(c.keep))
	}
	return text, false, err
}

func run(store *db.Store) error {
	slow := func(page string) ([]byte, error) { return []byte("This is " + page + "."), nil }
	server := httptest.NewServer(&cache{store: store, backend: slow, keep: time.Minute, asking: map[string]*sync.Mutex{}})
	defer server.Close()
	for range 2 {
		r, err := http.Get(server.URL + "/news")
		if err != nil {
			return err
		}
		text, err := io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", r.Header.Get("X-Cache"), text)
	}
	return nil
}

func main() {
	store, err := db.OpenMemory(nil) // db.Open("cache", nil) keeps the pages.
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(run(store), store.Close()); err != nil {
		log.Fatal(err)
	}
}
