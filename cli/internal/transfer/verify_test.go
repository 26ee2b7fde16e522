package transfer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
)

// A hash whose last field expires while it is compared has no line, which must not give the lines of the keys after it
// to others.
func TestCompareBesideExpiry(t *testing.T) {
	store, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Hash("h").Put("f", []byte("v")); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(2 * time.Second) // by then all has been dumped
	if _, err := store.Hash("h").ExpireFieldsAt(at, []string{"f"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := store.String(name).Set([]byte("value of " + name)); err != nil {
			t.Fatal(err)
		}
	}
	keys := [][]byte{[]byte("h"), []byte("a"), []byte("b")}
	found := make([]dumped, len(keys))
	for i, key := range keys {
		if found[i], err = dumpOwn(store, string(key)); err != nil || found[i].payload == nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	time.Sleep(time.Until(at.Add(time.Millisecond)))
	other := slices.Clone(found)
	other[0] = dumped{}
	different, err := compareDumps(keys, found, other, 0)
	if err != nil || len(different) > 1 {
		t.Errorf("%v, %v", different, err)
	}
}

// What the other side refuses ends a transfer, or is counted and, up to a hundred times, named; the pace keeps to its
// rate and ends with its context.
func TestSkipsAndPace(t *testing.T) {
	named, why, end := 0, errors.New("refused"), errors.New("the end")
	o := Options{Warn: func(error) { named++ }}
	var r Result
	if err := o.skip(&r, why, end); err != end || r.Skipped != 0 {
		t.Errorf("%v, %+v", err, r)
	}
	o.KeepGoing = true
	for range 150 {
		if err := o.skip(&r, why, end); err != nil {
			t.Fatal(err)
		}
	}
	if r.Skipped != 150 || named != maxNamed {
		t.Errorf("%d skipped, %d named", r.Skipped, named)
	}
	synctest.Test(t, func(t *testing.T) {
		o, began := Options{Rate: 100}, time.Now()
		if err := o.pace(t.Context(), began, &Result{Keys: 250}); err != nil || time.Since(began) != 2500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.pace(ctx, time.Now(), &Result{Keys: 1e6}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
