// Embedded is a program that carries its data with it: a store that go:embed has put into the binary, opened for
// reading.
//
// The store is made by gen.go, on whatever machine: go generate ./examples/embedded.
package main

import (
	"embed"
	"errors"
	"fmt"
	"log"

	"github.com/stavedb/stave/db"
)

//go:generate go run gen.go

//go:embed data
var files embed.FS

// explain says what a status of HTTP means.
func explain(store *db.Store, status string) (string, error) {
	text, err := store.Hash("http:status").Get(status)
	if errors.Is(err, db.ErrNotFound) {
		return "", fmt.Errorf("%q is no status of HTTP", status)
	}
	return string(text), err
}

func run(store *db.Store) error {
	for _, status := range []string{"200", "404", "418"} {
		text, err := explain(store, status)
		if err != nil {
			return err
		}
		fmt.Println(status, text)
	}
	return nil
}

func main() {
	store, err := db.OpenFS(files, "data", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(run(store), store.Close()); err != nil {
		log.Fatal(err)
	}
}
