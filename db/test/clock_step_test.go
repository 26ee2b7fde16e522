package db_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
)

// wallClock is a machine's clock that tests step.
type wallClock struct{ ahead atomic.Int64 }

func (c *wallClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// handles is what a store and a transaction have in common.
type handles interface {
	String(key string) db.String
	Hash(key string) db.Hash
	Key(key string) db.Key
	Keyspace() db.Keyspace
}

// settingDeadlines are all ways to give "k" a deadline, or the field "f" of the hash "k", after d or at a moment.
// Each begins with the name of its method.
var settingDeadlines = map[string]func(h handles, d time.Duration, at time.Time) error{
	"String.Put TTL": func(h handles, d time.Duration, _ time.Time) error { return h.String("k").Put(nil, db.TTL(d)) },
	"String.Put ExpireAt": func(h handles, _ time.Duration, at time.Time) error {
		return h.String("k").Put(nil, db.ExpireAt(at))
	},
	"String.Set TTL": func(h handles, d time.Duration, _ time.Time) error {
		return first(h.String("k").Set(nil, db.TTL(d)))
	},
	"String.Set ExpireAt": func(h handles, _ time.Duration, at time.Time) error {
		return first(h.String("k").Set(nil, db.ExpireAt(at)))
	},
	"String.GetAndExpire": func(h handles, d time.Duration, _ time.Time) error {
		return errors.Join(h.String("k").Put(nil), first(h.String("k").GetAndExpire(d)))
	},
	"String.GetAndExpireAt": func(h handles, _ time.Duration, at time.Time) error {
		return errors.Join(h.String("k").Put(nil), first(h.String("k").GetAndExpireAt(at)))
	},
	"Keyspace.PutWith TTL": func(h handles, d time.Duration, _ time.Time) error {
		return h.Keyspace().PutWith([]db.Pair{{Key: "k"}}, db.TTL(d))
	},
	"Keyspace.PutWith ExpireAt": func(h handles, _ time.Duration, at time.Time) error {
		return h.Keyspace().PutWith([]db.Pair{{Key: "k"}}, db.ExpireAt(at))
	},
	"Key.Expire": func(h handles, d time.Duration, _ time.Time) error {
		return errors.Join(h.String("k").Put(nil), first(h.Key("k").Expire(d)))
	},
	"Key.ExpireAt": func(h handles, _ time.Duration, at time.Time) error {
		return errors.Join(h.String("k").Put(nil), first(h.Key("k").ExpireAt(at)))
	},
	"Key.Rename": func(h handles, d time.Duration, _ time.Time) error {
		return errors.Join(h.String("k2").Put(nil, db.TTL(d)), h.Key("k2").Rename("k"))
	},
	"Key.CopyTo": func(h handles, _ time.Duration, at time.Time) error {
		err := errors.Join(h.String("k2").Put(nil, db.ExpireAt(at)), h.Key("k2").CopyTo(0, "k"))
		return errors.Join(err, first(h.Key("k2").Delete()))
	},
	"Key.Restore TTL": func(h handles, d time.Duration, _ time.Time) error {
		dump, err := h.Key("stays").Dump()
		return errors.Join(err, h.Key("k").Restore(dump, db.TTL(d)))
	},
	"Key.Restore ExpireAt": func(h handles, _ time.Duration, at time.Time) error {
		dump, err := h.Key("stays").Dump()
		return errors.Join(err, h.Key("k").Restore(dump, db.ExpireAt(at)))
	},
	"Key.Restore fields": func(h handles, _ time.Duration, at time.Time) error {
		_, err := h.Hash("k2").PutAll(db.Field{Name: "f"}, db.Field{Name: "g"})
		err = errors.Join(err, first(h.Hash("k2").ExpireFieldsAt(at, []string{"f"})))
		dump, failed := h.Key("k2").Dump()
		return errors.Join(err, failed, h.Key("k").Restore(dump), first(h.Key("k2").Delete()))
	},
	"Hash.Put TTL": func(h handles, d time.Duration, _ time.Time) error {
		return first(h.Hash("k").Put("f", nil, db.TTL(d)))
	},
	"Hash.Put ExpireAt": func(h handles, _ time.Duration, at time.Time) error {
		return first(h.Hash("k").Put("f", nil, db.ExpireAt(at)))
	},
	"Hash.PutWith TTL": func(h handles, d time.Duration, _ time.Time) error {
		return h.Hash("k").PutWith([]db.Field{{Name: "f"}}, db.TTL(d))
	},
	"Hash.PutWith ExpireAt": func(h handles, _ time.Duration, at time.Time) error {
		return h.Hash("k").PutWith([]db.Field{{Name: "f"}}, db.ExpireAt(at))
	},
	"Hash.ExpireFields": func(h handles, d time.Duration, _ time.Time) error {
		return errors.Join(first(h.Hash("k").Put("f", nil)), first(h.Hash("k").ExpireFields(d, []string{"f"})))
	},
	"Hash.ExpireFieldsAt": func(h handles, _ time.Duration, at time.Time) error {
		return errors.Join(first(h.Hash("k").Put("f", nil)), first(h.Hash("k").ExpireFieldsAt(at, []string{"f"})))
	},
	"Hash.GetAndExpire": func(h handles, d time.Duration, _ time.Time) error {
		return errors.Join(first(h.Hash("k").Put("f", nil)), first(h.Hash("k").GetAndExpire(d, "f")))
	},
	"Hash.GetAndExpireAt": func(h handles, _ time.Duration, at time.Time) error {
		return errors.Join(first(h.Hash("k").Put("f", nil)), first(h.Hash("k").GetAndExpireAt(at, "f")))
	},
	"Hash.VisitAndExpireAt": func(h handles, _ time.Duration, at time.Time) error {
		visit := func(int, []byte) bool { return true }
		return errors.Join(first(h.Hash("k").Put("f", nil)), h.Hash("k").VisitAndExpireAt(at, []string{"f"}, visit))
	},
}

// settingNone take options for conditions alone, or a time that is no deadline.
var settingNone = []string{"Geo.AddWith", "Key.Delete", "List.PushWith", "SortedSet.AddWith", "SortedSet.IncrWith"}

// TestDeadlinesAreAllStepped: every method of a handle that takes a time or options is in one of the two lists above.
func TestDeadlinesAreAllStepped(t *testing.T) {
	times := []reflect.Type{reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[[]db.WriteOption]()}
	known := slices.Clone(settingNone)
	for name := range settingDeadlines {
		method, _, _ := strings.Cut(name, " ")
		known = append(known, method)
	}
	seen := 0
	store := reflect.TypeFor[*db.Store]()
	for i := range store.NumMethod() {
		maker := store.Method(i).Type
		if maker.NumOut() != 1 || maker.Out(0).Kind() != reflect.Struct || !strings.HasSuffix(maker.Out(0).PkgPath(), "/db") {
			continue
		}
		h := maker.Out(0)
		for j := range h.NumMethod() {
			m := h.Method(j)
			for k := 1; k < m.Type.NumIn(); k++ {
				if !slices.Contains(times, m.Type.In(k)) {
					continue
				}
				if seen++; !slices.Contains(known, h.Name()+"."+m.Name) {
					t.Errorf("%s.%s takes a %v: how does it work when the clock is stepped?", h.Name(), m.Name, m.Type.In(k))
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d methods take a time", seen)
	}
}

// ways are how a call comes to a store.
var ways = map[string]func(s *db.Store, fn func(h handles) error) error{
	"Store": func(s *db.Store, fn func(h handles) error) error { return fn(s) },
	"Update": func(s *db.Store, fn func(h handles) error) error {
		return s.Update(func(tx *db.Tx) error { return fn(tx) })
	},
	"UpdateKeys": func(s *db.Store, fn func(h handles) error) error {
		return s.UpdateKeys(stepKeys, func(tx *db.Tx) error { return fn(tx) })
	},
	"Begin": func(s *db.Store, fn func(h handles) error) error {
		tx, err := s.Begin(true, stepKeys...)
		if err != nil {
			return err
		}
		_, err = tx.End(fn(tx))
		return err
	},
	"BeginUnlessLocked": func(s *db.Store, fn func(h handles) error) error {
		tx, _, err := serverside.DB.BeginUnlessLocked(s, true, stepKeys...)
		if err != nil {
			return err
		}
		_, err = tx.End(fn(tx))
		return err
	},
	"TryBegin": func(s *db.Store, fn func(h handles) error) error {
		tx, ok, err := serverside.DB.TryBegin(s, true, nil, stepKeys...)
		if err == nil && !ok { // it may not wait
			tx, err = s.Begin(true, stepKeys...)
		}
		if err != nil {
			return err
		}
		_, err = tx.End(fn(tx))
		return err
	},
}

var stepKeys = []string{"k", "k2", "stays"}

// TestClockStepped: a clock that was ahead, by seconds to hours, is put right. Every deadline that is set from then on counts by
// the clock as it is, what was shown as expired stays gone, and what was not shown is there until its time. The store stays open, or is
// closed or killed in between; and once more after the deadline was set.
func TestClockStepped(t *testing.T) {
	rng := chance.Rand(t)
	names := slices.Sorted(maps.Keys(ways))
	for _, name := range slices.Sorted(maps.Keys(settingDeadlines)) {
		for _, between := range []string{"open", "closed", "killed"} {
			gap := []time.Duration{3 * time.Second, 2 * time.Hour, time.Second + time.Duration(rng.Int64N(int64(12*time.Hour)))}[rng.IntN(3)].Truncate(24 * time.Millisecond)
			s := stepper{gap: gap, between: between, way: names[rng.IntN(len(names))], set: settingDeadlines[name]}
			s.options = db.Options{NoMerge: true, Sync: db.SyncNone, OrderedKeys: rng.IntN(2) == 0}
			if rng.IntN(2) == 0 {
				s.options.ExpireEvery = -1
			}
			ok := t.Run(fmt.Sprintf("%s/%s/%s/%v", name, between, s.way, gap), func(t *testing.T) { synctest.Test(t, s.test) })
			if !ok {
				return
			}
		}
	}
}

type stepper struct {
	gap          time.Duration
	between, way string
	set          func(h handles, d time.Duration, at time.Time) error
	options      db.Options
	clock        wallClock
	mem          *vfs.Mem
	store        *db.Store
}

// reopen closes the store, or leaves it as it is and opens what a killed process would.
func (s *stepper) reopen(t *testing.T, how string) {
	switch left := s.mem.Clone(); how {
	case "closed":
		must(t, s.store.Close())
	case "killed":
		must(t, s.store.Close())
		s.mem = left
	default:
		return
	}
	s.open(t)
}

func (s *stepper) open(t *testing.T) {
	seam.Of(&s.options).FS = s.mem
	seam.Of(&s.options).Clock = s.clock.now
	s.store = ok[*db.Store](t)(db.Open("d", &s.options))
}

func (s *stepper) test(t *testing.T) {
	s.mem = vfs.NewMem()
	s.open(t)
	must(t, s.store.String("stays").Put(nil))
	must(t, s.store.String("late").Put(nil, db.TTL(s.gap/2)))
	must(t, s.store.String("gone").Put(nil, db.TTL(s.gap/4)))
	must(t, first(s.store.Hash("h").PutAll(db.Field{Name: "gone"}, db.Field{Name: "stays"})))
	must(t, first(s.store.Hash("h").ExpireFields(s.gap/4, []string{"gone"})))

	s.clock.ahead.Store(int64(s.gap / 3))
	s.wantGone(t, "ahead")
	s.clock.ahead.Store(0)
	s.reopen(t, s.between)
	d := min(s.gap/8, 10*time.Second).Truncate(time.Millisecond)
	at := s.clock.now().Add(d)
	must(t, ways[s.way](s.store, func(h handles) error { return s.set(h, d, at) }))
	s.wantTTL(t, d, at)
	s.wantGone(t, "after the step back")
	s.reopen(t, s.between)
	s.wantTTL(t, d, at)
	s.wantGone(t, "after the deadline was set")
	must(t, s.store.String("gone").Put(nil)) // it may be made again
	time.Sleep(d - time.Millisecond)
	s.wantTTL(t, time.Millisecond, at)
	time.Sleep(time.Millisecond)
	s.wantTTL(t, 0, at)
	if there := ok[int](t)(s.store.Keyspace().Exists("late", "gone", "h")); there != 3 {
		t.Errorf("%d of 3 keys are there that should be", there)
	}
	if ttl := ok[time.Duration](t)(s.store.Key("late").TTL()); ttl != s.gap/2-d {
		t.Errorf("what was not shown as expired has %v left, want %v", ttl, s.gap/2-d)
	}
	// The clock goes ahead again, for good.
	must(t, s.store.String("k").Put(nil, db.TTL(time.Hour)))
	s.clock.ahead.Add(int64(time.Hour))
	s.wantTTL(t, 0, at)
	must(t, s.store.Close())
}

// wantGone looks at what has expired.
func (s *stepper) wantGone(t *testing.T, when string) {
	t.Helper()
	keys := ok[[]string](t)(s.store.Keyspace().Keys("*"))
	n := ok[int](t)(s.store.Keyspace().CountRange(db.KeyPrefix("gone")))
	if _, err := s.store.String("gone").Get(); !errors.Is(err, db.ErrNotFound) || slices.Contains(keys, "gone") || n != 0 {
		t.Errorf("%s: a key that was shown as expired: %v, keys %q, count %d", when, err, keys, n)
	}
	if has, n := ok[bool](t)(s.store.Hash("h").Has("gone")), ok[int](t)(s.store.Hash("h").Len()); has || n != 1 {
		t.Errorf("%s: a field that was shown as expired: %v, %d fields", when, has, n)
	}
}

// wantTTL looks at "k", which is to be there for so long.
func (s *stepper) wantTTL(t *testing.T, left time.Duration, at time.Time) {
	t.Helper()
	typ := ok[db.Type](t)(s.store.Key("k").Type())
	if left == 0 {
		if has := typ == db.TypeHash && ok[bool](t)(s.store.Hash("k").Has("f")); has || typ == db.TypeString {
			t.Error("it is there after its time")
		}
		return
	}
	if typ != db.TypeHash {
		ttl, err := s.store.Key("k").TTL()
		deadline, failed := s.store.Key("k").Deadline()
		if err != nil || failed != nil || ttl != left || !deadline.Equal(at) {
			t.Errorf("a %v: TTL is %v, %v, the deadline %v, %v; want %v, %v", typ, ttl, err, deadline, failed, left, at)
		}
		return
	}
	ttls, err := s.store.Hash("k").FieldTTLs("f")
	deadlines, failed := s.store.Hash("k").FieldDeadlines("f")
	if err != nil || failed != nil || ttls[0] != left || !deadlines[0].At.Equal(at) {
		t.Errorf("TTL of the field is %v, %v, the deadline %v, %v; want %v, %v", ttls, err, deadlines, failed, left, at)
	}
}
