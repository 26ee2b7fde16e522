package bitcask_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stavedb/stave/bitcask"
)

// effect is a put of a test.
type effect struct{ key, value string }

func begin(t *testing.T, s *bitcask.Store, key string) *bitcask.Tx {
	t.Helper()
	tx, err := s.Begin(true, key)
	must(t, err)
	return tx
}

func putWithEffect(t *testing.T, s *bitcask.Store, e effect) {
	t.Helper()
	tx := begin(t, s, e.key)
	defer tx.End()
	must(t, tx.PutString(0, e.key, []byte(e.value)))
	tx.SetEffects(e)
	_, err := tx.Commit()
	must(t, err)
}

// TestEffectsInTheOrderOfTheLog: the effects of commits come in the order of the log, each once, and a snapshot holds
// exactly those that came before its moment.
func TestEffectsInTheOrderOfTheLog(t *testing.T) {
	s, err := bitcask.Open(t.TempDir(), &bitcask.Options{Sync: bitcask.SyncAlways}) // writers wait for each other
	must(t, err)
	defer func() { must(t, s.Close()) }()
	const writers, puts, snapshots = 8, 300, 5
	var mu sync.Mutex
	var effects []effect
	var last uint64
	s.OnWritten(func(e any, next uint64) {
		mu.Lock()
		defer mu.Unlock()
		if next <= last {
			t.Errorf("%d after %d", next, last)
		}
		effects, last = append(effects, e.(effect)), next
	})
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := range puts {
				putWithEffect(t, s, effect{fmt.Sprint("key", (w+i)%5), fmt.Sprint(w, ":", i)})
			}
		})
	}
	for range snapshots {
		before := 0
		snap, err := s.Snapshot(t.Context(), bitcask.SnapshotOptions{AtCut: func() {
			mu.Lock()
			defer mu.Unlock()
			before = len(effects)
		}})
		must(t, err)
		mu.Lock()
		values := map[string]string{}
		for _, e := range effects[:before] {
			values[e.key] = e.value
		}
		mu.Unlock()
		wants(t, snap, values)
		must(t, snap.Close())
	}
	running.Wait()
	if len(effects) != writers*puts || last != s.NextSequence() {
		t.Errorf("effects of %d commits up to %d, want %d up to %d", len(effects), last, writers*puts, s.NextSequence())
	}
}

// TestCommitWithoutEffects: while commits are to have effects, one that changes a key without is a bug that ends a
// test. What the store notes of itself has none, and nor have commits when nobody wants them any more.
func TestCommitWithoutEffects(t *testing.T) {
	s, err := bitcask.Open(t.TempDir(), nil)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	s.OnWritten(func(effects any, _ uint64) { t.Errorf("effects %v", effects) })
	put := func(write func(tx *bitcask.Tx) error) (panicked bool) {
		tx := begin(t, s, "k")
		defer tx.End()
		defer func() { panicked = recover() != nil }()
		must(t, write(tx))
		_, err := tx.Commit()
		must(t, err)
		return false
	}
	for i, c := range []struct {
		want  bool
		write func(tx *bitcask.Tx) error
	}{
		{true, func(tx *bitcask.Tx) error { return tx.PutString(0, "k", nil) }},
		{true, func(tx *bitcask.Tx) error { return tx.PutLibrary("lib", []byte("text")) }},
		{false, func(tx *bitcask.Tx) error { return tx.PutSystem("note", []byte(strconv.Itoa(1))) }},
	} {
		if panicked := put(c.write); panicked != c.want {
			t.Errorf("%d: panicked: %t", i, panicked)
		}
	}
	s.OnWritten(nil)
	must(t, s.Put("k", nil))
}
