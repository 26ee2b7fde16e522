package bitcask_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/keydir"
)

// TestOnlyDeclaredKeys: a transaction uses no keys but those that it began with, also where it has locked their stripe.
// It could meet what another one that has claimed them is about to write, and would not claim them itself.
func TestOnlyDeclaredKeys(t *testing.T) {
	s := open(t, t.TempDir(), yielding(bitcask.Options{}))
	keys := inOneStripe(s, 40)
	for n := 1; n < len(keys); n++ {
		tx, err := s.Begin(true, keys[:n]...)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, n - 1, n / 2, 0, n / 3} {
			if err := tx.PutString(0, keys[i], []byte("v")); err != nil {
				t.Errorf("%d keys: one of them: %v", n, err)
			}
		}
		_, _, found := tx.Find(0, keys[n])
		put := tx.PutString(0, keys[n], []byte("v"))
		each := tx.EachKey(0, s.StripeOfKey(keys[0]), 0, func(uint64, []byte, keydir.Type) bool { return true })
		for _, err := range []error{found, put, each} {
			if !errors.Is(err, bitcask.ErrNotLocked) {
				t.Errorf("%d keys: another one, of the same stripe: %v", n, err)
			}
		}
		tx.Recycle()
	}
}

// TestSystemRecordAfterClaim: a transaction that has claimed its keys, and then puts a system record, does not wait for
// one that has the stripe of its keys and waits to put one.
func TestSystemRecordAfterClaim(t *testing.T) {
	s, err := bitcask.Open(t.TempDir(), yielding(bitcask.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	keys := inOneStripe(s, 2)
	run := func(key string, apart func(tx *bitcask.Tx)) error {
		tx, err := s.Begin(true, key)
		if err != nil {
			return err
		}
		defer tx.Recycle()
		if apart != nil {
			tx.Apart(func() {})
		}
		if err := tx.PutSystem("name "+key, []byte(key)); err != nil {
			return err
		}
		if apart != nil {
			apart(tx)
		}
		_, err = tx.Commit()
		return err
	}
	done := make(chan error, 2)
	go func() {
		done <- run(keys[0], func(tx *bitcask.Tx) {
			go func() { done <- run(keys[1], nil) }()
			tx.Apart(func() { time.Sleep(100 * time.Millisecond) })
		})
	}()
	for range 2 {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("both wait for each other") // and so would Close for them
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
