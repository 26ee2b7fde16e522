package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/vfs"
)

var evictPolicies = []db.EvictPolicy{
	db.EvictAllKeysLRU, db.EvictAllKeysLFU, db.EvictAllKeysRandom, db.EvictVolatileLRU, db.EvictVolatileLFU, db.EvictVolatileRandom, db.EvictVolatileTTL,
}

func cache(t *testing.T, e db.Evict) *db.Store {
	t.Helper()
	return checkedAtEnd(t, ok[*db.Store](t)(db.OpenMemory(&db.Options{Evict: e})))
}

// checkedAtEnd closes a store at the end of the test, and checks it before.
func checkedAtEnd(t *testing.T, s *db.Store) *db.Store {
	t.Cleanup(func() {
		_, err := s.Check(context.Background(), func(f db.Finding) { t.Error(f) })
		must(t, err)
		must(t, s.Close())
	})
	return s
}

// keysOf are the keys of all namespaces, by number and name.
func keysOf(t *testing.T, s *db.Store) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for ns := range s.Namespaces() {
		for _, key := range ok[[]string](t)(ok[*db.Store](t)(s.Use(ns)).Keyspace().Keys("*")) {
			found[fmt.Sprint(ns, " ", key)] = true
		}
	}
	return found
}

// TestEvict: a cache stays within its bound whatever is put, in all namespaces, and evicts no key that its policy
// protects.
func TestEvict(t *testing.T) {
	const bound, timedKey, chunk = 50_000, 112, 1024 // the first small collection of a stripe takes a chunk
	for _, policy := range evictPolicies {
		t.Run(string(policy), func(t *testing.T) {
			s := cache(t, db.Evict{Policy: policy, Memory: bound})
			equal(t, "options", s.Evict(), db.Evict{Policy: policy, Memory: bound})
			other := ok[*db.Store](t)(s.Use(3))
			timed := strings.HasPrefix(string(policy), "volatile")
			put, protected := 0, 0
			for i := range 4000 {
				at, key := s, fmt.Sprint("key", i)
				if i%3 == 0 {
					at = other
				}
				var options []db.WriteOption
				switch {
				case i%8 != 0:
					options = append(options, db.TTL(time.Hour+time.Duration(i)*time.Second))
				case i > 1000 && timed:
					continue // else there would be nothing left to evict
				}
				must(t, at.String(key).Put([]byte("value"), options...))
				put++
				if len(options) == 0 {
					protected++
				}
				if i%100 == 0 {
					ok[bool](t)(at.Hash("h"+key).Put("field", []byte("value")))
					must(t, first(at.Key("h"+key).Expire(time.Hour)))
					put++
				}
				if got := s.Stats().EntryBytes; got > bound+3*timedKey+chunk {
					t.Fatalf("%d keys take %d bytes", i, got)
				}
			}
			must(t, s.SetEvict(db.Evict{})) // the background evicts as well
			evicted := s.Stats().Evicted
			found := keysOf(t, s)
			for evicted != s.Stats().Evicted { // what had been chosen goes still
				evicted, found = s.Stats().Evicted, keysOf(t, s)
			}
			if int(evicted) != put-len(found) || evicted < 3000 {
				t.Errorf("%d evicted, and %d of %d left", evicted, len(found), put)
			}
			if got := s.Stats().EntryBytes; got < bound*9/10 {
				t.Errorf("no more than %d bytes are left", got)
			}
			left := 0
			for i := 0; i < 4000; i += 8 {
				if found[fmt.Sprint(0, " key", i)] || found[fmt.Sprint(3, " key", i)] {
					left++
				}
			}
			if timed && left != protected {
				t.Errorf("%d of %d keys without a deadline are left", left, protected)
			}
		})
	}
}

// TestEvictSparesUsedKeys: keys that are read or written again and again outlast many others.
func TestEvictSparesUsedKeys(t *testing.T) {
	for _, policy := range []db.EvictPolicy{db.EvictAllKeysLRU, db.EvictVolatileLFU} {
		for name, use := range map[string]func(s *db.Store, key string) error{
			"get":                func(s *db.Store, key string) error { return first(s.String(key).Get()) },
			"get without a lock": func(s *db.Store, key string) error { return first(s.String("forever" + key).Get()) },
			"locked": func(s *db.Store, key string) error {
				n, err := s.String(key).Len()
				if n == 0 {
					return db.ErrNotFound
				}
				return err
			},
			"tx": func(s *db.Store, key string) error {
				return s.View(func(tx *db.Tx) error { return first(tx.String(key).Get()) })
			},
			"put": func(s *db.Store, key string) error {
				return s.String(key).Put([]byte("again"), db.KeepTTL, db.IfPresent)
			},
			"hash": func(s *db.Store, key string) error { return first(s.Hash("h" + key).Get("f")) },
		} {
			t.Run(string(policy)+" "+name, func(t *testing.T) {
				o := &db.Options{Sync: db.SyncNone, Evict: db.Evict{Policy: policy, Memory: 100_000}}
				s := checkedAtEnd(t, ok[*db.Store](t)(db.Open(t.TempDir(), o))) // a store in memory maps nothing, and reads with a lock
				for i := range 20 {
					key := fmt.Sprint("hot", i)
					must(t, s.String("forever"+key).Put([]byte("x")))
					must(t, s.String(key).Put([]byte("x"), db.TTL(time.Hour)))
					ok[bool](t)(s.Hash("h"+key).Put("f", []byte("x")))
					ok[bool](t)(s.Key("h" + key).Expire(time.Hour))
				}
				for i := range 10_000 {
					if err := use(s, fmt.Sprint("hot", i%20)); err != nil {
						t.Fatalf("key %d, after %d others, of which %d are evicted: %v", i%20, i, s.Stats().Evicted, err)
					}
					must(t, s.String(fmt.Sprint("cold", i)).Put([]byte("x"), db.TTL(time.Hour)))
				}
				if s.Stats().Evicted < 8000 {
					t.Errorf("%d evicted", s.Stats().Evicted)
				}
			})
		}
	}
}

// TestEvictSparesOverwritten: to put a key again is a use of it, though nobody reads it.
func TestEvictSparesOverwritten(t *testing.T) {
	s := cache(t, db.Evict{Policy: db.EvictAllKeysLRU, Memory: 20_000})
	stop := s.OnEvents(db.ClassEvicted, func(e db.Event) {
		if strings.HasPrefix(e.Key, "hot") {
			t.Errorf("%s is evicted", e.Key)
		}
	})
	defer stop()
	for i := range 10_000 {
		must(t, s.String(fmt.Sprint("hot", i%20)).Put([]byte("again")))
		must(t, s.String(fmt.Sprint("cold", i)).Put([]byte("x")))
	}
	if s.Stats().Evicted < 8000 {
		t.Errorf("%d evicted", s.Stats().Evicted)
	}
}

// TestEvictEarliestDeadline: volatile-ttl takes the keys in the order of their deadlines.
func TestEvictEarliestDeadline(t *testing.T) {
	s := cache(t, db.Evict{})
	const n = 1000
	for i := range n {
		must(t, s.String(fmt.Sprint((i*7)%n)).Put([]byte("x"), db.TTL(time.Hour+time.Duration((i*7)%n)*time.Second)))
	}
	must(t, s.String("kept").Put([]byte("x")))
	events := subscribe(t, s, db.EventOptions{Classes: db.ClassEvicted})
	must(t, s.SetEvict(db.Evict{Policy: db.EvictVolatileTTL, Memory: s.Stats().EntryBytes / 2}))
	for s.Stats().EntryBytes > s.Evict().Memory {
		must(t, s.String("kept").Put([]byte("x")))
	}
	var order []string
	for event := range events.All(t.Context()) {
		order = append(order, event.Key)
		if len(order) == int(s.Stats().Evicted) {
			break
		}
	}
	for i, key := range order {
		if key != fmt.Sprint(i) {
			t.Fatalf("key %s is number %d", key, i)
		}
	}
	if n := len(order); n < 490 || n > 520 {
		t.Errorf("%d keys of %d are evicted for a half", n, n)
	}
}

// TestEvictTells: an eviction is an event and a change, and replicas get a DEL; a watched key has changed.
func TestEvictTells(t *testing.T) {
	s := cache(t, db.Evict{})
	for i := range 100 {
		must(t, s.String(fmt.Sprint(i)).Put([]byte("x")))
	}
	watch := ok[*db.Watch](t)(s.Watch("7"))
	defer watch.Close()
	events := subscribe(t, s, db.EventOptions{})
	changed := map[string]int{}
	stopChanges := s.OnChanges(func(changes []db.Change, _ db.Ticket) {
		for _, c := range changes {
			changed[c.Key]++
		}
	})
	var told []string
	stop := ok[func()](t)(serverside.DB.Capture(s, serverside.Capture{Written: func(c serverside.Commit) { told = append(told, commandLines(t, c.RESP)...) }}))
	must(t, s.SetEvict(db.Evict{Policy: db.EvictAllKeysRandom, Memory: 1}))
	for len(keysOf(t, s)) > 0 {
		if !serverside.DB.MakeRoom(s, true) && s.Len() > 0 {
			t.Fatal("no room, though there are keys")
		}
	}
	must(t, s.SetEvict(db.Evict{}))
	stop()
	stopChanges()
	heard := strings.Split(heard(t, s, events), ", ")
	slices.Sort(heard)
	if len(heard) != 100 || heard[0] != "evicted 0" || heard[99] != "evicted 99" {
		t.Errorf("heard %q", heard)
	}
	if len(changed) != 100 || changed["7"] != 1 {
		t.Errorf("%d changes: %v", len(changed), changed)
	}
	deleted := map[string]bool{}
	for _, line := range told {
		words := strings.Fields(line)
		switch words[0] {
		case "DEL", "UNLINK":
			for _, key := range words[1:] {
				deleted[key] = true
			}
		case "SELECT", "MULTI", "EXEC":
		default:
			t.Errorf("replicas get %q", line)
		}
	}
	equal(t, "keys that replicas delete", len(deleted), 100)
	must(t, s.View(func(tx *db.Tx) error {
		if has := ok[bool](t)(watch.Changed(tx)); !has {
			t.Error("a watched key is evicted, and has not changed")
		}
		return nil
	}))
}

// TestEvictNothing: what a policy protects stays, and whoever asks for room learns that there is none; so with a store
// that another one writes to. Writes go on.
func TestEvictNothing(t *testing.T) {
	s := cache(t, db.Evict{Policy: db.EvictVolatileLRU, Memory: 1000})
	for i := range 500 {
		must(t, s.String(fmt.Sprint(i)).Put([]byte("x")))
	}
	equal(t, "keys", s.Len(), 500)
	equal(t, "room", serverside.DB.MakeRoom(s, true), false)
	must(t, s.String("timed").Put([]byte("x"), db.TTL(time.Hour)))
	equal(t, "room with a key that may go", serverside.DB.MakeRoom(s, false), true)
	equal(t, "keys", s.Len(), 501)
	equal(t, "room once it has gone", serverside.DB.MakeRoom(s, true), false)
	equal(t, "keys", s.Len(), 500)
	must(t, s.SetEvict(db.Evict{Policy: db.EvictNone, Memory: 1000}))
	equal(t, "room without eviction", serverside.DB.MakeRoom(s, true), true)

	must(t, serverside.DB.SetReplicaOf(s, []byte{serverside.IsReplica}, true))
	must(t, s.SetEvict(db.Evict{Policy: db.EvictAllKeysLRU, Memory: 1000}))
	equal(t, "room in a replica", serverside.DB.MakeRoom(s, true), false)
	equal(t, "keys of a replica", s.Len(), 500)
	must(t, serverside.DB.SetReplicaOf(s, nil, false))
	for range 1000 {
		must(t, s.String("more").Put([]byte("x")))
	}
	if s.Len() > 50 {
		t.Errorf("%d keys are left in what is no replica any more", s.Len())
	}
	equal(t, "bad policy", errors.Is(s.SetEvict(db.Evict{Policy: "lru"}), db.ErrOption), true)
	equal(t, "bad bound", errors.Is(s.SetEvict(db.Evict{Memory: -1}), db.ErrOption), true)
	equal(t, "what holds", s.Evict(), db.Evict{Policy: db.EvictAllKeysLRU, Memory: 1000})
}

// TestEvictWithoutWriters: the background loop reaches a bound that is lowered, and finds what was used in keys that have
// come since.
func TestEvictWithoutWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cache(t, db.Evict{Policy: db.EvictAllKeysLRU, Memory: 1 << 30})
		for i := range 5000 {
			must(t, s.String(fmt.Sprint(i)).Put([]byte("x")))
		}
		time.Sleep(2 * time.Second) // as many bits as keys need
		for i := range 100 {
			ok[[]byte](t)(s.String(fmt.Sprint(i)).Get())
		}
		must(t, s.SetEvict(db.Evict{Policy: db.EvictAllKeysLRU, Memory: 50_000}))
		time.Sleep(time.Minute)
		if n := s.Len(); n > 2500 || n < 2300 {
			t.Errorf("%d keys are left in 50 kB", n)
		}
		for i := range 100 {
			if has := ok[bool](t)(s.Key(fmt.Sprint(i)).Exists()); !has {
				t.Errorf("key %d is gone, which was used", i)
			}
		}
	})
}

// TestEvictNotWithin: nothing is evicted within a transaction, however much it adds.
func TestEvictNotWithin(t *testing.T) {
	s := cache(t, db.Evict{Policy: db.EvictAllKeysLRU, Memory: 20_000})
	must(t, s.Update(func(tx *db.Tx) error {
		for i := range 5000 {
			if err := tx.String(fmt.Sprint(i)).Put([]byte("x")); err != nil {
				return err
			}
		}
		equal(t, "room within a closure", serverside.DB.MakeRoom(s, true), true)
		equal(t, "keys", tx.Len(), 5000)
		return nil
	}))
	for s.Stats().EntryBytes > 20_000 {
		equal(t, "room", serverside.DB.MakeRoom(s, true), true)
	}
	all := func() int { return int(s.Stats().Evicted) + s.Len() }
	for began := time.Now(); all() != 5000 && time.Since(began) < time.Minute; { // some are evicted by the loop, between the two
		time.Sleep(time.Millisecond)
	}
	equal(t, "keys", all(), 5000)
}

// TestEvictOrderedKeys: keys that are listed in order take more, and are not listed any more.
func TestEvictOrderedKeys(t *testing.T) {
	s := ok[*db.Store](t)(db.Open("store", seam.With(&db.Options{Evict: db.Evict{Policy: db.EvictAllKeysLRU, Memory: 4000}, OrderedKeys: true}, seam.Options{FS: vfs.NewMem()})))
	defer func() { must(t, s.Close()) }()
	for i := range 1000 {
		must(t, s.String(fmt.Sprint(i)).Put([]byte("x")))
	}
	if n := s.Len(); n > 4000/85+2 || n < 30 {
		t.Errorf("%d keys, with 85 bytes each where they are listed in order", n)
	}
	listed := 0
	for range s.Keyspace().Range(db.KeyRange{}) {
		listed++
	}
	equal(t, "keys that are listed in order", listed, s.Len())
}

// TestEvictionThatFails leaves the ordered keys as they are, and what is called for a waiter may write.
func TestEvictionThatFails(t *testing.T) {
	var refuses atomic.Bool
	none := errors.New("refused")
	s := ok[*db.Store](t)(db.Open(t.TempDir(), seam.With(&db.Options{OrderedKeys: true}, seam.Options{FS: vfs.NewMem(), Refuse: func() error {
		if refuses.Load() {
			return none
		}
		return nil
	}})))
	defer s.Close() //nolint:errcheck // what counts has been checked
	for i := range 100 {
		must(t, s.String(fmt.Sprint(i)).Put([]byte("v")))
	}
	refuses.Store(true)
	must(t, s.SetEvict(db.Evict{Policy: db.EvictAllKeysRandom, Memory: 1}))
	serverside.DB.MakeRoom(s, true)
	must(t, s.SetEvict(db.Evict{}))
	refuses.Store(false)
	equal(t, "keys", s.Len(), 100)
	equal(t, "ordered keys", ok[int](t)(s.Keyspace().CountRange(db.KeyRange{})), 100)
}
