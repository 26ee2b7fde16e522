package bitcask

import (
	"testing"
	"time"

	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// TestTurns: of transactions in turn a writer is alone and readers are together, until their End; one that cannot begin leaves
// its turn to others, and those that are not in turn neither wait nor are waited for.
func TestTurns(t *testing.T) {
	s := openChunks(t, vfs.NewMem())
	begin := func(write bool, key string) (tx *Tx, ok bool) {
		t.Helper()
		tx, ok, err := s.BeginInTurn(write, key)
		if err != nil {
			t.Fatal(err)
		}
		return tx, ok
	}
	stripe := func(key string) int { return keydir.StripeOf(s.man.Seed.Hash(key)) }
	elsewhere := "b" // no key of a's stripe
	for stripe(elsewhere) == stripe("a") {
		elsewhere += "b"
	}
	for _, test := range []struct{ first, second, waits bool }{{true, true, true}, {true, false, true}, {false, true, true}, {false, false, false}} {
		first, ok := begin(test.first, "a")
		if !ok {
			t.Fatalf("%v: it does not begin", test)
		}
		began := make(chan *Tx)
		go func() {
			tx, ok, err := s.BeginInTurn(test.second, elsewhere)
			if err != nil || !ok {
				t.Errorf("%v: %t, %v", test, ok, err)
			}
			began <- tx
		}()
		patience := 10 * time.Second
		if test.waits {
			patience = 20 * time.Millisecond
		}
		var second *Tx
		select {
		case second = <-began:
			if test.waits {
				t.Errorf("%v: it does not wait", test)
			}
		case <-time.After(patience):
			if !test.waits {
				t.Errorf("%v: it waits", test)
			}
		}
		first.Recycle()
		if second == nil {
			second = <-began
		}
		second.Recycle()
	}

	other, err := s.Begin(true, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Recycle()
	for _, write := range []bool{true, false} {
		if _, ok := begin(write, "a"); ok {
			t.Error("it has a key that another transaction has locked")
		}
		if !s.turns.TryLock() {
			t.Fatal("it has kept its turn")
		}
		s.turns.Unlock()
	}
	for _, begin := range []func(bool, ...string) (*Tx, bool, error){s.TryBegin, s.BeginUnlessLocked} {
		apart, ok, err := begin(true, elsewhere)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if !s.turns.TryLock() {
			t.Fatal("what is not in turn has kept one")
		}
		s.turns.Unlock()
		apart.Recycle()
	}
}

// TestTurnComesLate: what a transaction finds when its turn comes counts, not what there was when it asked.
func TestTurnComesLate(t *testing.T) {
	s := openChunks(t, vfs.NewMem())
	commitTo(t, s, "a", func(tx *Tx) {}) // the store is ready for writes
	first, ok, err := s.BeginInTurn(false, "a")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	began := make(chan bool)
	go func() {
		tx, ok, err := s.BeginInTurn(true, "b")
		if err != nil {
			t.Error(err)
		}
		if ok {
			tx.Recycle()
		}
		began <- ok
	}()
	for s.turns.TryRLock() { // until a writer waits
		s.turns.RUnlock()
		time.Sleep(time.Millisecond)
	}
	due := s.writing.due.Swap(new(opener))
	first.Recycle()
	if <-began {
		t.Error("it has begun although its commit would wait")
	}
	s.writing.due.Store(due)
}
