package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
)

// wantThere compares whether a string is there, and if so how long it has to live.
func wantThere(t *testing.T, s *db.Store, key string, left time.Duration) {
	t.Helper()
	ttl, err := s.Key(key).TTL()
	if gone := errors.Is(err, db.ErrNotFound); gone != (left == 0) || !gone && (err != nil || ttl != left) {
		t.Errorf("%q has %v to live, %v; want %v", key, ttl, err, left)
	}
}

// TestClockSteppedForReaders: stores that only read cannot delete what they have shown as expired. One that sees the store as
// it was, and a snapshot, hide it all the same, and so does a store that is opened again to read. Time is the wall's for
// all but the snapshot, for which it stands still.
func TestClockSteppedForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock wallClock
		mem := vfs.NewMem()
		o := db.Options{NoMerge: true, ExpireEvery: -1}
		*seam.Of(&o) = seam.Options{FS: mem, Clock: clock.now}
		s := ok[*db.Store](t)(db.Open("d", &o))
		must(t, s.String("gone").Put(nil, db.TTL(time.Minute)))
		must(t, s.String("later").Put(nil, db.TTL(2*time.Minute)))
		must(t, s.String("stays").Put(nil, db.TTL(3*time.Hour)))
		s2 := o
		s2.ReadOnly = true
		seam.Of(&s2).FS = mem.Clone()
		reader := ok[*db.Store](t)(db.Open("d", &s2))

		clock.ahead.Store(int64(90 * time.Second))
		wantThere(t, s, "gone", 0)
		wantThere(t, reader, "gone", 0)
		snapshot := ok[*db.Store](t)(s.Snapshot(context.Background()))
		clock.ahead.Store(0)
		later := ok[*db.Store](t)(s.Snapshot(context.Background()))
		seam.Of(&s2).FS = mem.Clone()
		again := ok[*db.Store](t)(db.Open("d", &s2))
		for name, v := range map[string]*db.Store{"writer": s, "reader": reader, "snapshot": later, "opened again": again} {
			t.Log(name)
			wantThere(t, v, "gone", 0)
			wantThere(t, v, "later", 2*time.Minute)
			wantThere(t, v, "stays", 3*time.Hour)
		}
		wantThere(t, snapshot, "later", 30*time.Second)
		time.Sleep(61 * time.Second)
		for name, v := range map[string]*db.Store{"writer": s, "reader": reader, "opened again": again} {
			t.Log(name, "a minute later")
			wantThere(t, v, "gone", 0)
			wantThere(t, v, "later", 59*time.Second)
			must(t, v.Close())
		}
		wantThere(t, snapshot, "later", 30*time.Second)
		wantThere(t, later, "later", 2*time.Minute)
		must(t, snapshot.Close())
		must(t, later.Close())
	})
}

// TestClockSteppedForFollowers: a follower hides what its writer has noted as shown, and shows what the writer sets
// once that has been deleted.
func TestClockSteppedForFollowers(t *testing.T) {
	for _, reload := range []bool{false, true} {
		t.Run(fmt.Sprintf("read again=%v", reload), func(t *testing.T) {
			var clock wallClock
			dir := onDisk(t)
			s := ok[*db.Store](t)(db.Open(dir, seam.With(&db.Options{NoMerge: true, ExpireEvery: -1}, seam.Options{Clock: clock.now})))
			defer func() { must(t, s.Close()) }()
			must(t, s.String("gone").Put(nil, db.TTL(30*time.Minute)))
			must(t, s.String("late").Put(nil, db.TTL(45*time.Minute)))
			var f *db.Store
			if !reload {
				f = followed(t, dir, db.Options{}, seam.Options{Clock: clock.now})
			}
			clock.ahead.Store(int64(time.Hour))
			wantThere(t, s, "gone", 0)
			if reload {
				f = followed(t, dir, db.Options{}, seam.Options{Clock: clock.now})
			}
			caughtUp(t, f, s)
			wantThere(t, f, "late", 0)
			clock.ahead.Store(0)
			wantThere(t, f, "gone", 0)
			if _, err := f.Key("late").TTL(); err != nil {
				t.Errorf("what only the follower has shown: %v", err)
			}
			must(t, s.String("new").Put(nil, db.ExpireAt(clock.now().Add(20*time.Minute)))) // which deletes the other one
			caughtUp(t, f, s)
			wantThere(t, f, "gone", 0)
			if ttl, err := f.Key("new").TTL(); err != nil || ttl < 19*time.Minute {
				t.Errorf("what was set since has %v, %v", ttl, err)
			}
			if n, entries := f.Log().Len(0), s.Log().Len(0); n != 2 || entries != 2 {
				t.Errorf("the follower has %d keys, the writer %d, want 2", n, entries)
			}
		})
	}
}

// TestClockSteppedWhileUsed: the clock is stepped at random while readers look at keys that expire and writers make
// others. Whatever has been shown as expired is never there again, and what no clock has reached is there.
func TestClockSteppedWhileUsed(t *testing.T) {
	rng := chance.Rand(t)
	var clock wallClock
	mem := vfs.NewMem()
	o := db.Options{NoMerge: true, Sync: db.SyncNone, OrderedKeys: true, ExpireEvery: 3 * time.Millisecond}
	*seam.Of(&o) = seam.Options{FS: mem, Clock: clock.now}
	s := ok[*db.Store](t)(db.Open("d", &o))
	var (
		mu        sync.Mutex // guards all below
		latest    = clock.now()
		deadlines = map[string]time.Time{}
		gone      = map[string]bool{}
	)
	step := func(to time.Duration) {
		clock.ahead.Store(int64(to))
		mu.Lock()
		if now := clock.now(); now.After(latest) {
			latest = now
		}
		mu.Unlock()
	}
	const writers, each = 4, 250
	var work sync.WaitGroup
	stop := make(chan struct{})
	for w := range writers {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 2))
		work.Go(func() {
			for i := range each {
				key := fmt.Sprintf("%d-%d", w, i)
				at := clock.now().Add(time.Duration(1+rng.IntN(100)) * time.Minute)
				var err error
				if rng.IntN(2) == 0 {
					err = s.String(key).Put(nil, db.ExpireAt(at))
				} else {
					err = s.Update(func(tx *db.Tx) error {
						return errors.Join(first(tx.Hash(key).Put("f", nil)), first(tx.Hash(key).ExpireFieldsAt(at, []string{"f"})))
					})
				}
				switch {
				case err == nil:
					mu.Lock()
					deadlines[key] = at.Truncate(time.Millisecond)
					mu.Unlock()
				case !errors.Is(err, db.ErrClock): // the clock was put back between its begin and the change
					t.Error(err)
				}
			}
		})
	}
	var readers sync.WaitGroup
	for range 2 {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 3))
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				mu.Lock()
				var key string
				for key = range deadlines { // any
					if rng.IntN(3) == 0 {
						break
					}
				}
				was := gone[key]
				mu.Unlock()
				if key == "" {
					continue
				}
				there, err := s.Key(key).Exists()
				if err != nil || there && was {
					t.Errorf("%q: there %v, shown as expired before %v, %v", key, there, was, err)
				}
				if !there {
					mu.Lock()
					gone[key] = true
					mu.Unlock()
				}
			}
		})
	}
	for range 60 {
		step(time.Duration(rng.IntN(180)) * time.Minute)
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
	}
	work.Wait()
	close(stop)
	readers.Wait()
	step(0)
	left := mem.Clone()
	must(t, s.String("set").Put(nil, db.TTL(time.Hour)))
	check := func(s *db.Store, when string) {
		there := 0
		for key, at := range deadlines {
			switch exists := ok[bool](t)(s.Key(key).Exists()); {
			case exists && gone[key]:
				t.Errorf("%s: %q is back, which was shown as expired", when, key)
			case !exists && at.After(latest):
				t.Errorf("%s: %q is gone, its deadline %v is after %v", when, key, at, latest)
			case exists:
				there++
			}
		}
		t.Logf("%s: %d of %d keys are there, %d were shown as expired", when, there, len(deadlines), len(gone))
	}
	check(s, "open")
	_ = ok[bitcask.CheckResult](t)(s.Check(context.Background(), func(f bitcask.Finding) { t.Error(f) }))
	must(t, s.Close())
	seam.Of(&o).FS = left
	s = ok[*db.Store](t)(db.Open("d", &o))
	check(s, "killed")
	must(t, s.Close())
}
