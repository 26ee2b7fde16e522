package bitcask_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/keydir"
)

// yielding are the options of a store whose transactions yield at each step.
func yielding(o bitcask.Options) *bitcask.Options {
	return seam.With(&o, seam.Options{YieldEvery: 1})
}

// inOneStripe returns keys of one stripe.
func inOneStripe(s *bitcask.Store, n int) (keys []string) {
	stripe := -1
	for i := 0; len(keys) < n; i++ {
		key := fmt.Sprint("key", i)
		if st := s.StripeOfKey(key); stripe < 0 || st == stripe {
			stripe, keys = st, append(keys, key)
		}
	}
	return keys
}

// TestYieldSharesStripes: while a transaction yields, others use its stripes, but not its keys, and what is about all
// keys of a stripe waits for its end.
func TestYieldSharesStripes(t *testing.T) {
	s := open(t, t.TempDir(), yielding(bitcask.Options{}))
	keys := inOneStripe(s, 3)
	mine, second, other := keys[0], keys[1], keys[2]
	for _, key := range keys {
		put(t, s, key, "old")
	}
	tx, err := s.Begin(true, mine, second)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{mine, second} { // a single put would show at the commit only
		if err := tx.PutString(0, key, []byte("new")); err != nil {
			t.Fatal(err)
		}
	}
	tx.Apart(func() {
		put(t, s, other, "meanwhile")
		want(t, s, other, "meanwhile")
	})
	var waiting sync.WaitGroup
	var over atomic.Bool
	for name, wait := range map[string]func() error{
		"get":    func() error { _, err := s.Get(mine); return err },
		"put":    func() error { return s.Put(second, []byte("later")) },
		"all":    func() error { tx, err := s.BeginAll(false); tx.Recycle(); return err },
		"stripe": func() error { tx, err := s.BeginStripe(false, s.StripeOfKey(mine)); tx.Recycle(); return err },
		"check":  func() error { _, err := s.Check(context.Background(), func(bitcask.Finding) {}); return err },
		"index":  s.SaveIndex,
	} {
		waiting.Go(func() {
			if err := wait(); err != nil || !over.Load() {
				t.Errorf("%s: did not wait for the end: %v", name, err)
			}
		})
	}
	for range 100 {
		tx.Apart(func() { time.Sleep(200 * time.Microsecond) })
	}
	if value, err := tx.Value(nil, 0, mine, "", keydir.String, slotOf(t, tx, mine)); err != nil || string(value) != "new" {
		t.Errorf("it reads %q of its own: %v", value, err)
	}
	over.Store(true)
	if _, err := tx.Commit(); err != nil {
		t.Error(err)
	}
	tx.Recycle()
	waiting.Wait()
	want(t, s, mine, "new")
	want(t, s, second, "later")
}

// TestTryBeginMeetsClaims: TryBegin begins beside a transaction that has released its stripes, but not on its keys.
func TestTryBeginMeetsClaims(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	keys := inOneStripe(s, 3)
	second, other := keys[1], keys[2]
	tx, err := s.Begin(true, keys[:2]...)
	if err != nil {
		t.Fatal(err)
	}
	tx.Apart(func() {
		for _, write := range []bool{false, true} {
			claimed, ok, err := s.TryBegin(write, other, second)
			if ok || err != nil {
				t.Errorf("a transaction on a key of the other began: %v", err)
				claimed.Recycle()
			}
			if all, ok, err := s.TryBegin(write); ok || err != nil {
				t.Errorf("a transaction on all keys began: %v", err)
				all.Recycle()
			}
			free, ok, err := s.TryBegin(write, other)
			if !ok || err != nil {
				t.Fatalf("a transaction on another key did not begin: %v", err)
			}
			free.Recycle()
		}
	})
	tx.Recycle()
	free, ok, err := s.TryBegin(true, keys...)
	if !ok || err != nil {
		t.Fatalf("the claim has not ended: %v", err)
	}
	free.Recycle()
}

func slotOf(t *testing.T, tx *bitcask.Tx, key string) keydir.Loc {
	t.Helper()
	slot, _, err := tx.Find(0, key)
	if err != nil {
		t.Fatal(err)
	}
	return slot.Loc
}

// amount reads a number within a transaction.
func amount(tx *bitcask.Tx, key string) (int, error) {
	slot, _, err := tx.Find(0, key)
	if err != nil || slot.Type == keydir.None {
		return 0, err
	}
	value, err := tx.Value(nil, 0, key, "", keydir.String, slot.Loc)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(value))
}

// TestYieldsAreIsolated moves amounts between keys, which share two stripes, in transactions that yield at each step,
// commit or roll back, beside merges, an INDEX, scans and transactions on all keys. No one sees a part of a
// transaction, and nothing is lost.
func TestYieldsAreIsolated(t *testing.T) {
	r := chance.Rand(t)
	dir := filepath.Join(t.TempDir(), "s")
	o := yielding(bitcask.Options{SegmentSize: 4 << 10})
	s := open(t, dir, o)
	keys := append(inOneStripe(s, 6), "x", "y")
	const each = 1000
	for _, key := range keys {
		put(t, s, key, strconv.Itoa(each))
	}
	rounds := 400
	if testing.Short() {
		rounds = 150
	}
	sum := func(tx *bitcask.Tx, err error) {
		defer tx.Recycle()
		total := 0
		for _, key := range keys {
			n, failed := amount(tx, key)
			total, err = total+n, errors.Join(err, failed)
		}
		if err != nil || total != each*len(keys) {
			t.Errorf("the amounts are %d, want %d: %v", total, each*len(keys), err)
		}
	}
	var work, watch sync.WaitGroup
	var over atomic.Bool
	for range 4 {
		seed := r.Uint64()
		work.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range rounds {
				i, k, n := r.IntN(len(keys)), r.IntN(len(keys)), r.IntN(20)
				if i == k {
					continue
				}
				tx, err := s.Begin(true, keys[i], keys[k])
				if err == nil {
					err = move(tx, keys[i], keys[k], n, r.IntN(4) == 0)
				}
				tx.Recycle()
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, look := range []func(){
		func() { sum(s.BeginAll(false)) }, func() { sum(s.BeginAll(true)) }, func() { sum(s.Begin(false, keys...)) },
		func() {
			if err := rewriteAll(s); err != nil {
				t.Error(err)
			}
		},
		func() {
			if err := s.SaveIndex(); err != nil {
				t.Error(err)
			}
			for item, err := range s.All() {
				if _, bad := strconv.Atoi(string(item.Value)); err != nil || bad != nil {
					t.Errorf("%s is %q: %v", item.Key, item.Value, err)
				}
			}
		},
	} {
		watch.Go(func() {
			for !over.Load() {
				look()
				time.Sleep(time.Millisecond)
			}
		})
	}
	work.Wait()
	over.Store(true)
	watch.Wait()
	check(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, o)
	sum(s.BeginAll(false))
	check(t, s)
}

// move moves an amount from one key to another by way of values that nobody may see, and commits unless it is to be
// rolled back.
func move(tx *bitcask.Tx, from, to string, n int, roll bool) error {
	a, err := amount(tx, from)
	if err != nil {
		return err
	}
	tx.Yield()
	b, err := amount(tx, to)
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { _, err := tx.Drop(0, to); return err },
		func() error { return tx.PutString(0, from, strconv.AppendInt(nil, int64(a-n), 10)) },
		func() error { return tx.PutString(0, to, []byte("no number")) },
		func() error { return tx.PutString(0, to, strconv.AppendInt(nil, int64(b+n), 10)) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
		tx.Yield()
	}
	if roll {
		return nil
	}
	_, err = tx.Commit()
	return err
}

// TestMergeWaitsForClaims: a merge beside a transaction that has released its stripes does not remove what that
// replaces, for it may be rolled back.
func TestMergeWaitsForClaims(t *testing.T) {
	s := open(t, t.TempDir(), yielding(bitcask.Options{SegmentSize: 4 << 10}))
	put(t, s, "k", "old")
	for i := range 100 {
		put(t, s, "filler", fmt.Sprintf("%0100d", i))
	}
	tx, err := s.Begin(true, "k")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"new", "newer"} { // a single put would show at the commit only
		if err := tx.PutString(0, "k", []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	merged := make(chan error, 1)
	tx.Apart(func() {
		go func() { merged <- rewriteAll(s) }()
		time.Sleep(100 * time.Millisecond)
	})
	tx.Recycle()
	if err := <-merged; err != nil {
		t.Error(err)
	}
	want(t, s, "k", "old")
	check(t, s)
}

// TestYieldOfAPanic: a panic beside a transaction that yields leaves nothing locked.
func TestYieldOfAPanic(t *testing.T) {
	s := open(t, t.TempDir(), yielding(bitcask.Options{}))
	put(t, s, "k", "old")
	func() {
		defer func() { _ = recover() }()
		tx, err := s.Begin(true, "k")
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Recycle()
		if err := tx.PutString(0, "k", []byte("new")); err != nil {
			t.Fatal(err)
		}
		tx.Apart(func() { panic("mine") })
	}()
	want(t, s, "k", "old")
	put(t, s, "k", "newer")
	check(t, s)
}
