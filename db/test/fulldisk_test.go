package db_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/budget"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
)

// TestDeletesOnAFullDisk: whatever takes something away works on a full disk, of all types, and what adds something is
// refused.
func TestDeletesOnAFullDisk(t *testing.T) {
	for _, o := range []db.Options{{}, {Sync: db.SyncAlways}, {SegmentSize: 2000}} {
		mem := vfs.NewMem()
		mem.SetLimit(512<<10, fullPage)
		seam.Of(&o).FS, o.Reserve, o.NoMerge, o.ExpireEvery = mem, 64<<10, true, -1
		s, err := db.Open("d", &o)
		must(t, err)
		for i := range 5 {
			_, err = s.Hash("hash").Put(fmt.Sprint("field", i), []byte("v"))
			must(t, err)
			_, err = s.List("list").PushBack([]byte(fmt.Sprint(i)))
			must(t, err)
			_, err = s.Set("set").Add(fmt.Sprint("member", i))
			must(t, err)
			_, err = s.SortedSet("zset").Add(db.Scored{Member: fmt.Sprint("member", i), Score: float64(i)})
			must(t, err)
		}
		must(t, s.String("long").Put([]byte(strings.Repeat("chunks", 20_000))))
		must(t, s.String("timed").Put([]byte("v"), db.TTL(time.Millisecond)))
		must(t, s.String("kept").Put([]byte("v"), db.TTL(time.Hour)))
		fillStore(t, s)
		time.Sleep(2 * time.Millisecond)
		removed := func(ok bool, err error) {
			t.Helper()
			if must(t, err); !ok {
				t.Error("nothing was there")
			}
		}
		some := func(n int, err error) {
			t.Helper()
			if must(t, err); n == 0 {
				t.Error("nothing was there")
			}
		}
		some(s.Hash("hash").Delete("field1"))
		_, err = s.List("list").PopFront()
		must(t, err)
		some(s.Set("set").Remove("member1"))
		some(s.SortedSet("zset").Remove("member1"))
		removed(s.Key("kept").Persist())
		n, err := s.Expire(time.Second, 100)
		if must(t, err); n != 1 {
			t.Errorf("%d keys reaped", n)
		}
		removed(s.Key("long").Delete())
		removed(s.Key("hash").Delete())
		must(t, s.Update(func(tx *db.Tx) error { // of a replica
			_, err := tx.Set("set").Remove("member2")
			return errors.Join(err, serverside.DB.PutOrigin(tx, serverside.Origin{Offset: 7}))
		}))
		for i := range 20 { // of a member of a group
			must(t, serverside.DB.SetMember(s, []byte(strings.Repeat("m", 300+i%3))))
		}
		for name, err := range map[string]error{
			"library": s.Update(func(tx *db.Tx) error { return serverside.DB.PutLibrary(tx, "l", "text") }),
			"put":     s.String("new").Put([]byte("v")),
			"field":   second(s.Hash("new").Put("f", nil)),
			"rename":  s.Key("set").Rename("other"),
			"both": s.Update(func(tx *db.Tx) error {
				_, err := tx.Key("filler1").Delete()
				return errors.Join(err, tx.String("new").Put(nil))
			}),
		} {
			if !errors.Is(err, db.ErrNoSpace) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if st := s.Stats(); st.State != db.StateFull {
			t.Errorf("%+v", st)
		}
		must(t, s.FlushAll())
		_, err = s.Merge(t.Context(), db.MergeOptions{All: true, Unlimited: true})
		must(t, err)
		must(t, s.String("new").Put([]byte("v")))
		wantSoundStore(t, s)
		must(t, s.Close())
		s, err = db.Open("d", &o)
		must(t, err)
		equal(t, "keys", s.Len(), 1)
		must(t, s.Close())
	}
}

func second[T any](_ T, err error) error { return err }

func wantSoundStore(t *testing.T, s *db.Store) {
	t.Helper()
	_, err := s.Check(t.Context(), func(f bitcask.Finding) { t.Error(f) })
	must(t, err)
}

// TestFullDiskIsFreedByItself: with merges in the background, a delete of everything is all that it takes.
func TestFullDiskIsFreedByItself(t *testing.T) {
	mem := vfs.NewMem()
	mem.SetLimit(512<<10, fullPage)
	s, err := db.Open("d", seam.With(&db.Options{Reserve: 64 << 10, SegmentSize: 16 << 10}, seam.Options{FS: mem}))
	must(t, err)
	fillStore(t, s)
	must(t, s.FlushAll())
	begin := time.Now()
	for {
		err := s.String("new").Put([]byte("v"))
		if err == nil {
			break
		}
		if !errors.Is(err, db.ErrNoSpace) || time.Since(begin) > time.Minute {
			t.Fatalf("after %v: %v; %+v", time.Since(begin), err, s.Stats())
		}
		time.Sleep(time.Millisecond)
	}
	must(t, s.Close())
}

// TestFullDiskWithLongNames fills disks with names that are most of the log, so that hints are nearly as long as their segments: they do not
// take what the first deletes need.
func TestFullDiskWithLongNames(t *testing.T) {
	for _, length := range []int{15_000, 30_000, 60_000} {
		long := strings.Repeat("k", length)
		for range budget.Rounds(t, 10, 100) {
			mem := vfs.NewMem()
			mem.SetLimit(16<<20, fullPage)
			s := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{Sync: db.SyncNone, ExpireEvery: -1}, seam.Options{FS: mem})))
			var err error
			n := 0
			for ; err == nil; n++ {
				err = s.String(fmt.Sprint(n, long)).Put(nil)
			}
			if !errors.Is(err, db.ErrNoSpace) {
				t.Fatal(err)
			}
			for i := range n - 1 {
				if !ok[bool](t)(s.Key(fmt.Sprint(i, long)).Delete()) {
					t.Fatalf("key %d of %d is not there", i, n)
				}
			}
			must(t, s.Close())
		}
	}
}

// TestFullDiskWithLongElements fills disks with elements of which name and key are long, so that a record of their deletes is as
// long as records of deletes may be: none is refused.
func TestFullDiskWithLongElements(t *testing.T) {
	for _, length := range []int{50_000, 65_000} {
		key, long := strings.Repeat("k", length), strings.Repeat("e", length)
		for range budget.Rounds(t, 4, 40) {
			for _, kind := range []string{"hash", "sorted set"} {
				mem := vfs.NewMem()
				mem.SetLimit(16<<20, fullPage)
				s := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{Sync: db.SyncNone}, seam.Options{FS: mem})))
				var err error
				n := 0
				for ; err == nil; n++ {
					if kind == "hash" {
						_, err = s.Hash(key).Put(fmt.Sprint(n, long), nil)
					} else {
						_, err = s.SortedSet(key).Add(db.Scored{Member: fmt.Sprint(n, long)})
					}
				}
				if !errors.Is(err, db.ErrNoSpace) {
					t.Fatal(err)
				}
				for i := range n - 1 {
					deleted := 0
					if kind == "hash" {
						deleted, err = s.Hash(key).Delete(fmt.Sprint(i, long))
					} else {
						deleted, err = s.SortedSet(key).Remove(fmt.Sprint(i, long))
					}
					if err != nil || deleted != 1 {
						t.Fatalf("%s of elements of %d: %d of %d: %d, %v", kind, length, i, n, deleted, err)
					}
				}
				must(t, s.Close())
			}
		}
	}
}

// TestFullDiskIsFreedByExpiry fills disks with what expires, which is deleted many at a time: however long the names are, that is not
// refused, and then writes resume.
func TestFullDiskIsFreedByExpiry(t *testing.T) {
	for _, length := range []int{100, 2000, 10_000, 30_000} {
		long := strings.Repeat("k", length)
		value := make([]byte, 50_000)
		for name, put := range map[string]func(s *db.Store, i int) error{
			"keys": func(s *db.Store, i int) error { return s.String(fmt.Sprint(i, long)).Put(value, db.TTL(time.Hour)) },
			"fields": func(s *db.Store, i int) error {
				return s.Hash("hash").PutWith([]db.Field{{Name: fmt.Sprint(i, long), Value: value}}, db.TTL(time.Hour))
			},
			"fields of a long key": func(s *db.Store, i int) error {
				return s.Hash(long).PutWith([]db.Field{{Name: fmt.Sprint(i), Value: value}}, db.TTL(time.Hour))
			},
		} {
			t.Run(fmt.Sprint(name, " of ", length), func(t *testing.T) {
				var clock wallClock
				mem := vfs.NewMem()
				mem.SetLimit(16<<20, fullPage)
				s := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{Sync: db.SyncNone, ExpireEvery: -1}, seam.Options{FS: mem, Clock: clock.now})))
				for _, hash := range []string{"hash", long} { // they stay
					must(t, first(s.Hash(hash).Put("stays", nil)))
				}
				var err error
				for i := 0; err == nil; i++ {
					err = put(s, i)
				}
				if !errors.Is(err, db.ErrNoSpace) {
					t.Fatal(err)
				}
				clock.ahead.Store(int64(2 * time.Hour))
				for n := 1; n > 0; {
					n = ok[int](t)(s.Expire(time.Minute, 1_000_000))
				}
				if n, fields := s.Len(), ok[int](t)(s.Hash("hash").Len())+ok[int](t)(s.Hash(long).Len()); n != 2 || fields != 2 {
					t.Errorf("%d keys are left, with %d fields", n, fields)
				}
				for begin := time.Now(); put(s, 0) != nil; time.Sleep(time.Millisecond) {
					if time.Since(begin) > time.Minute {
						t.Fatalf("writes do not resume: %+v", s.Stats())
					}
				}
				must(t, s.Close())
			})
		}
	}
}

// TestFullDiskIsFreedByDeleteRange fills disks and deletes all keys by one call: however long the names are, that is not refused,
// and then writes resume.
func TestFullDiskIsFreedByDeleteRange(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		for _, length := range []int{100, 2000, 20_000, 60_000} {
			t.Run(fmt.Sprint("names of ", length, ", ordered ", ordered), func(t *testing.T) {
				mem := vfs.NewMem()
				mem.SetLimit(16<<20, fullPage)
				s := ok[*db.Store](t)(db.Open("d", seam.With(&db.Options{Sync: db.SyncNone, OrderedKeys: ordered}, seam.Options{FS: mem})))
				long := strings.Repeat("k", length)
				put := func(i int) error { return s.String(fmt.Sprint(i, long)).Put(make([]byte, 2000)) }
				n := 0
				for put(n) == nil {
					n++
				}
				if got := ok[int](t)(s.Keyspace().DeleteRange(db.KeyRange{})); got != n {
					t.Errorf("%d of %d keys deleted", got, n)
				}
				for begin := time.Now(); put(0) != nil; time.Sleep(time.Millisecond) {
					if time.Since(begin) > time.Minute {
						t.Fatalf("writes do not resume: %+v", s.Stats())
					}
				}
				must(t, s.Close())
			})
		}
	}
}

// loudLines counts lines of the log at Warn and above.
type loudLines struct {
	slog.Handler
	n *atomic.Int64
}

func (l loudLines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l loudLines) Handle(context.Context, slog.Record) error        { l.n.Add(1); return nil }

// TestBackgroundWorkWaitsAfterFailures: a store that takes no writes, for want of space or after a failed sync, has
// keys to reap and segments to merge for ten minutes. The log has some lines of it, and the file system is not asked
// all the time.
func TestBackgroundWorkWaitsAfterFailures(t *testing.T) {
	for name, rule := range map[string]vfstest.Rule{
		"full":   {Ops: []vfstest.Op{vfstest.OpWrite, vfstest.OpCreate}, Err: syscall.ENOSPC, Sticky: true},
		"failed": {Ops: []vfstest.Op{vfstest.OpSync}, Err: syscall.EIO, Sticky: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fault := vfstest.NewFault(vfs.NewMem())
				var lines atomic.Int64
				s, err := db.Open("d", seam.With(&db.Options{SegmentSize: 4 << 10, Reserve: 16 << 10, Logger: slog.New(loudLines{slog.DiscardHandler, &lines})},
					seam.Options{FS: fault}))
				must(t, err)
				for i := range 200 {
					must(t, s.String(fmt.Sprint("k", i%60)).Put([]byte(strings.Repeat("v", 100)), db.TTL(time.Minute)))
				}
				fault.Inject(rule)
				for err == nil {
					err = s.String("refused").Put([]byte(strings.Repeat("v", 1000)))
					time.Sleep(2 * time.Second)
				}
				lines.Store(0)
				ops := fault.Ops()
				time.Sleep(10 * time.Minute)
				if n := lines.Load(); n > 20 {
					t.Errorf("%d lines in the log", n)
				}
				if n := fault.Ops() - ops; n > 20_000 {
					t.Errorf("%d operations on files", n)
				}
				fault.Heal()
				if err := s.Close(); err != nil && name == "full" {
					t.Error(err)
				}
			})
		})
	}
}
