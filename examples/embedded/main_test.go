package main

import (
	"errors"
	"net/http"
	"strconv"
	"testing"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
)

func Example() {
	main()
	// Output:
	// 200 OK
	// 404 Not Found
	// 418 I'm a teapot
}

// The store that is embedded is sound, and has every status.
func TestData(t *testing.T) {
	store, err := db.OpenFS(files, "data", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Check(t.Context(), func(f bitcask.Finding) { t.Error(f) }); err != nil {
		t.Error(err)
	}
	known := 0
	for status := range 600 {
		text, err := explain(store, strconv.Itoa(status))
		if want := http.StatusText(status); err == nil && text != want {
			t.Errorf("%d: %q, want %q", status, text, want)
		} else if err == nil {
			known++
		}
	}
	if known < 60 { // a later Go may know more
		t.Errorf("%d are known", known)
	}
	if err := store.String("new").Put(nil); !errors.Is(err, db.ErrReadOnly) {
		t.Errorf("written: %v", err)
	}
}
