package db_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
)

// TestServedBesideLongWrites: a waiter whose other key belongs to a long transaction that has released its stripes
// waits for the end of that, also if the transaction that serves it has the lock of the same stripe.
func TestServedBesideLongWrites(t *testing.T) {
	s, err := db.Open(t.TempDir(), seam.With(&db.Options{}, seam.Options{YieldEvery: 1}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const sources = 3000 // of which a dozen share the stripe of the target
	const pushed = 20_000
	var waiters, pushers sync.WaitGroup
	for i := range sources {
		waiters.Go(func() {
			if _, err := s.List(fmt.Sprint(i)).MoveWait(t.Context(), "target", db.Front, db.Back); err != nil {
				t.Error(err)
			}
		})
	}
	for s.Waiting() < sources {
		time.Sleep(time.Millisecond)
	}
	tx, err := s.Begin(true, "target")
	if err != nil {
		t.Fatal(err)
	}
	push := func(n int) {
		if _, err := tx.List("target").PushBack(slices.Repeat([][]byte{[]byte("pushed")}, n)...); err != nil {
			t.Error(err)
		}
	}
	push(1) // it has claimed the key now
	for i := range sources {
		pushers.Go(func() {
			if _, err := s.List(fmt.Sprint(i)).PushBack([]byte("moved")); err != nil {
				t.Error(err)
			}
		})
	}
	push(pushed - 1)
	if _, err := tx.End(nil); err != nil {
		t.Error(err)
	}
	pushers.Wait()
	waiters.Wait()
	if n, err := s.List("target").Len(); err != nil || n != sources+pushed {
		t.Errorf("%d elements, want %d: %v", n, sources+pushed, err)
	}
	if _, err := s.Check(t.Context(), func(f bitcask.Finding) { t.Error(f) }); err != nil {
		t.Error(err)
	}
}
