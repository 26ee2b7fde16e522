package bitcask_test

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/keydir"
)

// step is the next step of a walk through namespace 0: it calls fn for what it finds, and returns false at the end.
func step(t *testing.T, s *bitcask.Store, w *bitcask.Walk, fn func(key, value []byte)) bool {
	t.Helper()
	stripe, gather := w.Stripe()
	if stripe == keydir.Stripes {
		return false
	}
	tx, err := s.BeginStripe(false, stripe)
	must(t, err)
	if gather {
		must(t, tx.Gather(w, 0, func(key []byte, typ keydir.Type) bool {
			t.Errorf("%q is a %v", key, typ)
			return true
		}))
		tx.End()
		return true
	}
	others, err := tx.Page(w, 0, fn)
	must(t, err)
	tx.End()
	for _, h := range others {
		tx, err := s.BeginStripe(false, keydir.StripeOf(h))
		must(t, err)
		must(t, tx.EachKey(0, keydir.StripeOf(h), h, func(now uint64, key []byte, _ keydir.Type) bool {
			if now == h {
				fn(key, nil)
			}
			return now == h
		}))
		tx.End()
	}
	return true
}

// TestWalkWhileChanged walks through a store that is overwritten, merged and indexed meanwhile: what stays is found once, what changes at
// most once, and with no value that had been overwritten or deleted before its page was read.
func TestWalkWhileChanged(t *testing.T) {
	const stay, change = 3000, 2000
	rng := chance.Rand(t)
	s := open(t, "db", seam.With(&bitcask.Options{SegmentSize: 1 << 16}, seam.Options{FS: vfs.NewMem()}))
	var acknowledged [change]atomic.Int64
	for _, i := range rng.Perm(stay + change) {
		if i < stay {
			put(t, s, fmt.Sprint("stays:", i), fmt.Sprint(i))
		} else {
			put(t, s, fmt.Sprint(i-stay), "0")
		}
	}
	var over atomic.Bool
	var work sync.WaitGroup
	work.Go(func() {
		for version := int64(1); !over.Load(); version++ {
			i := rng.IntN(change)
			key, err := strconv.Itoa(i), error(nil)
			if version%5 == 0 {
				_, err = s.Delete(key)
			} else {
				err = s.Put(key, strconv.AppendInt(nil, version, 10))
			}
			if err != nil {
				t.Error(err)
				return
			}
			acknowledged[i].Store(version)
		}
	})
	work.Go(func() {
		for !over.Load() {
			if err := rewriteAll(s); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
	})
	for _, most := range []int{1, 100, 1000, 100_000} {
		for range 5 {
			w := bitcask.WalkWith(most)
			found := map[string]int{}
			var before [change]int64
			for more := true; more; {
				for i := range before {
					before[i] = acknowledged[i].Load()
				}
				more = step(t, s, w, func(key, value []byte) {
					found[string(key)]++
					i, err := strconv.Atoi(string(key))
					if err != nil || value == nil {
						return
					}
					if version, err := strconv.ParseInt(string(value), 10, 64); err != nil || version < before[i] {
						t.Errorf("windows of %d: %s has version %q after %d was acknowledged", most, key, value, before[i])
					}
				})
			}
			for key, n := range found {
				if n != 1 {
					t.Errorf("windows of %d: %s was found %d times", most, key, n)
				}
			}
			for i := range stay {
				if found[fmt.Sprint("stays:", i)] != 1 {
					t.Errorf("windows of %d: stays:%d was not found", most, i)
				}
			}
		}
	}
	over.Store(true)
	work.Wait()
	check(t, s)
}

// TestWalkMeetsFlush: a namespace that is flushed between gathering and reading has no keys, and one that is swapped has those of the other at most.
func TestWalkMeetsFlush(t *testing.T) {
	s := open(t, "db", seam.With(&bitcask.Options{}, seam.Options{FS: vfs.NewMem()}))
	for i := range 1000 {
		put(t, s, strconv.Itoa(i), "v")
	}
	var w bitcask.Walk
	for stripe, gather := w.Stripe(); gather && stripe < keydir.Stripes; stripe, gather = w.Stripe() {
		step(t, s, &w, nil)
	}
	tx, err := s.BeginAll(true)
	must(t, err)
	_, _, err = tx.Flush(0)
	must(t, err)
	tx.End()
	put(t, s, "7", "new")
	for step(t, s, &w, func(key, value []byte) {
		if string(key) != "7" || value != nil && string(value) != "new" {
			t.Errorf("%s is %q after the flush", key, value)
		}
	}) {
	}
}

// walkSeen is a walk, what it has found, and what has been there throughout and was not found yet.
type walkSeen struct {
	*bitcask.Walk
	found, missing map[string]bool
}

// TestWalkBetweenChanges makes random changes between the steps of two walks. Each finds what is there at the time of its step, with the
// value of that time, no key twice, and each key that is there throughout.
func TestWalkBetweenChanges(t *testing.T) {
	const keys = 1000
	rng := chance.Rand(t)
	s := open(t, "db", seam.With(&bitcask.Options{SegmentSize: 1 << 14}, seam.Options{FS: vfs.NewMem()}))
	here, other := map[string]string{}, map[string]string{} // namespaces 0 and 1
	var walks [2]walkSeen

	// change is a transaction on some keys or on all, which may be rolled back.
	change := func(n int) {
		var names []string
		for range n {
			names = append(names, strconv.Itoa(rng.IntN(keys)))
		}
		var tx *bitcask.Tx
		var err error
		began := true
		switch rng.IntN(3) {
		case 0:
			tx, err = s.BeginAll(true)
		case 1:
			tx, began, err = s.TryBegin(true, names...)
		default:
			tx, err = s.Begin(true, names...)
		}
		must(t, err)
		if !began { // the log waits for its next segment
			return
		}
		defer tx.End()
		now := maps.Clone(here)
		for _, name := range names {
			if rng.IntN(4) == 0 {
				_, err := tx.Drop(0, name)
				must(t, err)
				delete(now, name)
				continue
			}
			value := fmt.Sprint(rng.Uint64())
			must(t, tx.PutString(0, name, []byte(value)))
			now[name] = value
		}
		if rng.IntN(4) > 0 {
			_, err := tx.Commit()
			must(t, err)
			here = now
		}
	}
	onAll := func(fn func(tx *bitcask.Tx) error) {
		tx, err := s.BeginAll(true)
		must(t, err)
		defer tx.End()
		must(t, fn(tx))
	}
	advance := func(w *walkSeen) {
		more := w.Walk != nil && step(t, s, w.Walk, func(key, value []byte) {
			name := string(key)
			now, there := here[name]
			if !there || value != nil && string(value) != now {
				t.Errorf("%s is found as %q, and is %q, %v", name, value, now, there)
			}
			if w.found[name] {
				t.Errorf("%s is found twice", name)
			}
			w.found[name] = true
			delete(w.missing, name)
		})
		if more {
			return
		}
		for name := range w.missing {
			t.Errorf("%s is not found", name)
		}
		*w = walkSeen{bitcask.WalkWith([]int{1, 30, 300, 3000}[rng.IntN(4)]), map[string]bool{}, map[string]bool{}}
		for name := range here {
			w.missing[name] = true
		}
	}

	change(2 * keys)
	for range 5000 {
		switch n := rng.IntN(1000); {
		case n < 3:
			must(t, rewriteAll(s))
		case n < 4:
			onAll(func(tx *bitcask.Tx) error { _, err := tx.Swap(0, 1); return err })
			here, other = other, here
		case n < 5:
			onAll(func(tx *bitcask.Tx) error { _, _, err := tx.Flush(0); return err })
			here = map[string]string{}
		case n < 10:
			change(keys / 4)
		case n < 100:
			change(1 + rng.IntN(3))
		default:
			advance(&walks[rng.IntN(2)])
		}
		for i := range walks {
			maps.DeleteFunc(walks[i].missing, func(name string, _ bool) bool { _, there := here[name]; return !there })
		}
		if t.Failed() {
			return
		}
	}
	check(t, s)
}

// TestWalkOfAWriter: a transaction that walks and writes finds what it has changed itself.
func TestWalkOfAWriter(t *testing.T) {
	s := open(t, "db", seam.With(&bitcask.Options{}, seam.Options{FS: vfs.NewMem()}))
	put(t, s, "changes", "before")
	put(t, s, "goes", "before")
	put(t, s, "stays", "before")
	tx, err := s.BeginAll(true)
	must(t, err)
	defer tx.End()
	var w bitcask.Walk
	for stripe, gather := w.Stripe(); gather && stripe < keydir.Stripes; stripe, gather = w.Stripe() {
		must(t, tx.Gather(&w, 0, func([]byte, keydir.Type) bool { return true }))
	}
	must(t, tx.PutString(0, "changes", []byte("after")))
	_, err = tx.Drop(0, "goes")
	must(t, err)
	_, err = tx.Page(&w, 0, func(key, value []byte) {
		if string(key) != "stays" {
			t.Errorf("%s is %s", key, value)
		}
	})
	must(t, err)
}
