// Events is a log of what happened to orders: appended to, read by ranges of time, and followed.
//
// Entries of a stream are in the order of their ids, which begin with a time, so a range of time is a range of ids. A
// reader that remembers the last id it has dealt with goes on from there, after a restart as well.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/stavedb/stave/db"
)

const (
	events = "events"
	keep   = 1_000_000 // the newest ones; older ones are trimmed now and then
)

// record appends what happened to an order.
func record(store *db.Store, order, what string) (db.StreamID, error) {
	trim := &db.StreamTrim{MaxLen: keep, Approximate: true}
	return store.Stream(events).AddWith(db.StreamAddOptions{Trim: trim},
		db.Field{Name: "order", Value: []byte(order)}, db.Field{Name: "what", Value: []byte(what)})
}

// between calls fn for the events of a span of time, from its begin to just before its end, in order.
func between(store *db.Store, begin, end time.Time, fn func(at time.Time, order, what string)) error {
	for e, err := range store.Stream(events).All(db.StreamIDAt(begin)) {
		if err != nil {
			return err
		}
		at := time.UnixMilli(int64(e.ID.Ms))
		if !at.Before(end) {
			break
		}
		fn(at, string(e.Fields[0].Value), string(e.Fields[1].Value))
	}
	return nil
}

// follow deals with each event once, from where the reader of this name has come to, until ctx ends or deal fails.
func follow(ctx context.Context, store *db.Store, reader string, deal func(order, what string) error) error {
	place := store.String("place:" + reader)
	text, err := place.Get()
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	last, _ := db.ParseStreamID(string(text)) // from the beginning if there is none
	for ctx.Err() == nil {
		entries, err := store.Stream(events).ReadWait(ctx, last, 100)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := deal(string(e.Fields[0].Value), string(e.Fields[1].Value)); err != nil {
				return err
			}
			if last = e.ID; ctx.Err() != nil {
				break
			}
		}
		if err := place.Put([]byte(last.String())); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func run(store *db.Store) error {
	began := time.Now().Truncate(time.Millisecond)
	for _, e := range [][2]string{{"7", "paid"}, {"8", "paid"}, {"7", "sent"}} {
		if _, err := record(store, e[0], e[1]); err != nil {
			return err
		}
	}
	err := between(store, began, time.Now().Add(time.Second), func(_ time.Time, order, what string) { fmt.Println("order", order, what) })
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	n := 0
	err = follow(ctx, store, "mail", func(order, what string) error {
		if fmt.Println("mail: order", order, "is", what); n == 2 {
			stop()
		}
		n++
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func main() {
	store, err := db.OpenMemory(nil) // db.Open("events", nil) keeps them.
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(run(store), store.Close()); err != nil {
		log.Fatal(err)
	}
}
