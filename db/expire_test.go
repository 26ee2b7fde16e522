package db_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
)

// TestExpiryKeepsUp: keys that are due at one instant are gone soon. A cycle of a thousand keys each tenth of a second would take
// ten seconds for them.
func TestExpiryKeepsUp(t *testing.T) {
	const keys, soon = 100_000, 8 * time.Second
	s := inMemory(t, nil)
	due := time.Now().Add(time.Hour)
	must(t, s.Update(func(tx *db.Tx) error {
		for i := range keys {
			must(t, tx.String(strconv.Itoa(i)).Put(nil, db.ExpireAt(due)))
		}
		return nil
	}))
	began := time.Now()
	must(t, s.Update(func(tx *db.Tx) error {
		for i := range keys {
			ok[bool](t)(tx.Key(strconv.Itoa(i)).ExpireAt(began.Add(time.Millisecond)))
		}
		return nil
	}))
	for began = time.Now(); s.Len() > 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > soon {
			t.Fatalf("after %v %d keys are left", soon, s.Len())
		}
	}
	t.Logf("%d keys due at one instant were gone after %v", keys, time.Since(began).Round(time.Millisecond))
}
