package bitcask_test

import (
	"fmt"
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
