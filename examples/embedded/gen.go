//go:build ignore

// Gen makes the store that the program embeds.
package main

import (
	"errors"
	"log"
	"net/http"
	"os"
	"strconv"

	"github.com/stavedb/stave/db"
)

func main() {
	if err := errors.Join(os.RemoveAll("data"), fill()); err != nil {
		log.Fatal(err)
	}
}

func fill() error {
	store, err := db.Open("data", &db.Options{Reserve: -1, NoMerge: true}) // files as long as what they hold
	if err != nil {
		return err
	}
	var fields []db.Field
	for status := range 600 {
		if text := http.StatusText(status); text != "" {
			fields = append(fields, db.Field{Name: strconv.Itoa(status), Value: []byte(text)})
		}
	}
	_, err = store.Hash("http:status").PutAll(fields...)
	return errors.Join(err, store.Close(), os.Remove("data/LOCK"))
}
