package db_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
)

var (
	orderedOps  = flag.Int("ordered.ops", 1500, "random operations of TestOrderedKeysModel")
	orderedSeed = flag.Uint64("ordered.seed", 0, "seed of TestOrderedKeysModel (0: a random one)")
)

// orderedModel is a store with Options.OrderedKeys and, for each of two namespaces, the keys that it must have: with
// the moment from which they are gone, 0 for never.
type orderedModel struct {
	t     *testing.T
	rng   *rand.Rand
	files vfs.FS
	store *db.Store
	keys  [2]map[string]int64
}

func (m *orderedModel) open() {
	m.t.Helper()
	var err error
	m.store, err = db.Open("store", seam.With(&db.Options{OrderedKeys: true, SegmentSize: 4 << 10, NoMerge: true}, seam.Options{FS: m.files}))
	must(m.t, err)
}

func (m *orderedModel) key() string {
	const letters = "ab\x00\xff"
	key := make([]byte, m.rng.IntN(4))
	for i := range key {
		key[i] = letters[m.rng.IntN(len(letters))]
	}
	return string(key)
}

func (m *orderedModel) at(ns int) *db.Store {
	s, err := m.store.Use(ns)
	must(m.t, err)
	return s
}

// want is what the model selects.
func (m *orderedModel) want(ns int, r db.KeyRange) (keys []string) {
	now := time.Now().UnixMilli()
	for key, gone := range m.keys[ns] {
		if (gone == 0 || gone > now) && key >= r.Min && (r.Max == "" || key < r.Max) && strings.HasPrefix(key, r.Prefix) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	if r.Reverse {
		slices.Reverse(keys)
	}
	return keys
}

// compare looks at a random range, on the store and within a transaction.
func (m *orderedModel) compare(k db.Keyspace, ns int, r db.KeyRange) {
	m.t.Helper()
	var got []string
	for key := range each(m.t, k.Range(r)) {
		if got = append(got, key.Key); key.Type == db.TypeNone {
			m.t.Fatalf("%q holds nothing", key.Key)
		}
	}
	want := m.want(ns, r)
	if !slices.Equal(got, want) {
		m.t.Fatalf("%+v: got %q, want %q", r, got, want)
	}
	if n := ok[int](m.t)(k.CountRange(r)); n != len(want) {
		m.t.Fatalf("%+v: counted %d, want %d", r, n, len(want))
	}
}

func (m *orderedModel) randomRange() db.KeyRange {
	r := db.KeyRange{Reverse: m.rng.IntN(2) == 0}
	if m.rng.IntN(2) == 0 {
		r.Min = m.key()
	}
	if m.rng.IntN(2) == 0 {
		r.Max = m.key()
	}
	if m.rng.IntN(3) == 0 {
		r.Prefix = m.key()
	}
	return r
}

// write does something to keys, on a store or in a transaction, and to the model's.
func (m *orderedModel) write(k keys, keys map[string]int64) {
	m.t.Helper()
	key, other := m.key(), m.key()
	now := time.Now().UnixMilli()
	live := func(key string) bool { gone, is := keys[key]; return is && (gone == 0 || gone > now) }
	switch m.rng.IntN(9) {
	case 0, 1: // sometimes a string that is kept in chunks
		var value []byte
		if m.rng.IntN(8) == 0 {
			value = make([]byte, 100<<10)
		}
		must(m.t, k.String(key).Put(value))
		keys[key] = 0
	case 2:
		must(m.t, k.String(key).Put(nil, db.TTL(time.Second)))
		keys[key] = now + 1000
	case 3:
		ok[bool](m.t)(k.Key(key).Delete())
		delete(keys, key)
	case 4: // a collection, and with its last element none
		ok[bool](m.t)(k.Key(key).Delete())
		ok[int](m.t)(k.Set(key).Add("a", "b"))
		keys[key] = 0
		if m.rng.IntN(2) == 0 {
			ok[int](m.t)(k.Set(key).Remove("a", "b"))
			delete(keys, key)
		}
	case 5:
		err := k.Key(key).Rename(other)
		if live(key) && key != other {
			keys[other] = keys[key]
			delete(keys, key)
		}
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			m.t.Fatal(err)
		}
	case 6:
		fields := keys[key] // when a hash goes with its field, whatever deadline it gets besides
		if ok[bool](m.t)(k.Key(key).Expire(time.Duration(m.rng.IntN(3)-1) * time.Second)); live(key) {
			keys[key] = 1 // a deadline that is not in the future deletes
			if typ := ok[db.Type](m.t)(k.Key(key).Type()); typ == db.TypeHash {
				keys[key] = fields
			} else if typ != db.TypeNone {
				keys[key] = now + 1000
			}
		}
	case 7: // a hash that goes with its fields
		ok[bool](m.t)(k.Key(key).Delete())
		ok[bool](m.t)(k.Hash(key).Put("f", nil))
		ok[[]db.FieldResult](m.t)(k.Hash(key).ExpireFields(time.Second, []string{"f"}))
		keys[key] = now + 1000
	case 8:
		if m.rng.IntN(4) == 0 {
			r := m.randomRange()
			want := 0
			for name, gone := range keys {
				if (gone == 0 || gone > now) && name >= r.Min && (r.Max == "" || name < r.Max) && strings.HasPrefix(name, r.Prefix) {
					delete(keys, name)
					want++
				}
			}
			equal(m.t, "deleted", ok[int](m.t)(k.Keyspace().DeleteRange(r)), want)
		}
	}
}

// TestOrderedKeysModel compares ranges of keys with a map after random writes, rolled back transactions, expiry,
// flushes, swaps, merges and new starts.
func TestOrderedKeysModel(t *testing.T) {
	seed := chance.Draw(*orderedSeed)
	t.Logf("repeat with -ordered.seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		m := &orderedModel{t: t, rng: rand.New(rand.NewPCG(seed, 0)), files: vfs.NewMem(), keys: [2]map[string]int64{{}, {}}}
		m.open()
		defer func() { must(t, m.store.Close()) }()
		for range *orderedOps {
			ns := m.rng.IntN(2)
			s := m.at(ns)
			switch m.rng.IntN(30) {
			case 0:
				must(t, s.Flush())
				m.keys[ns] = map[string]int64{}
			case 1:
				must(t, m.store.Swap(0, 1))
				m.keys[0], m.keys[1] = m.keys[1], m.keys[0]
			case 2:
				time.Sleep(time.Second)
			case 3:
				must(t, m.store.Close())
				m.open()
			case 4:
				ok[db.MergeResult](t)(m.store.Merge(t.Context(), db.MergeOptions{All: true}))
			case 5, 6, 7:
				m.transaction(s, ns, m.rng.IntN(2) == 0)
			default:
				m.write(s, m.keys[ns])
			}
			m.compare(m.at(ns).Keyspace(), ns, m.randomRange())
		}
	})
}

// transaction writes several times, looks at its own writes, and fails if it is to.
func (m *orderedModel) transaction(s *db.Store, ns int, fails bool) {
	m.t.Helper()
	before := maps.Clone(m.keys[ns])
	failure := errors.New("no")
	err := s.Update(func(tx *db.Tx) error {
		for range 5 {
			m.write(tx, m.keys[ns])
			mark, saved := tx.Savepoint(), maps.Clone(m.keys[ns])
			m.write(tx, m.keys[ns])
			if m.rng.IntN(2) == 0 {
				tx.RollbackTo(mark)
				m.keys[ns] = saved
			}
			m.compare(tx.Keyspace(), ns, m.randomRange())
		}
		if fails {
			return failure
		}
		return nil
	})
	if fails {
		m.keys[ns] = before
	} else {
		must(m.t, err)
	}
}

// TestKeyRanges has the corners, with the index and without.
func TestKeyRanges(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		s, err := db.Open("store", seam.With(&db.Options{OrderedKeys: ordered}, seam.Options{FS: vfs.NewMem()}))
		must(t, err)
		for _, key := range []string{"", "a", "a\x00", "ab", "b", "\xff", "\xff\xff", "user:1", "user:10", "user:2", "user;"} {
			must(t, s.String(key).Put(nil))
		}
		for _, tt := range []struct {
			r    db.KeyRange
			want string
		}{
			{db.KeyRange{}, `"" "a" "a\x00" "ab" "b" "user:1" "user:10" "user:2" "user;" "\xff" "\xff\xff"`},
			{db.KeyRange{Reverse: true, Max: "b"}, `"ab" "a\x00" "a" ""`},
			{db.KeyPrefix("user:"), `"user:1" "user:10" "user:2"`},
			{db.KeyRange{Prefix: "user:", Min: "user:10", Reverse: true}, `"user:2" "user:10"`},
			{db.KeyRange{Prefix: "user:", Max: "user:10"}, `"user:1"`},
			{db.KeyPrefix("\xff"), `"\xff" "\xff\xff"`},
			{db.KeyPrefix("\xff\xff"), `"\xff\xff"`},
			{db.KeyRange{Min: "b", Max: "a"}, ``},
			{db.KeyRange{Min: "b", Max: "a", Reverse: true}, ``},
			{db.KeyRange{Max: "\x00"}, `""`},
		} {
			var got []string
			for key := range each(t, s.Keyspace().Range(tt.r)) {
				got = append(got, strconv.Quote(key.Key))
			}
			equal(t, fmt.Sprintf("ordered %v: %+v", ordered, tt.r), strings.Join(got, " "), tt.want)
			equal(t, fmt.Sprintf("ordered %v: the number of %+v", ordered, tt.r), ok[int](t)(s.Keyspace().CountRange(tt.r)), len(got))
		}
		equal(t, "deleted", ok[int](t)(s.Keyspace().DeleteRange(db.KeyPrefix("user:"))), 3)
		equal(t, "left", s.Len(), 8)
		must(t, s.Close())
	}
}

// TestRangeBesideWriters ranges over keys that stay while others come and go between them.
func TestRangeBesideWriters(t *testing.T) {
	s, err := db.Open("store", seam.With(&db.Options{OrderedKeys: true}, seam.Options{FS: vfs.NewMem()}))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	const stay = 1000
	for i := range stay {
		must(t, s.String(fmt.Sprintf("k%04d", i)).Put(nil))
	}
	stop := make(chan struct{})
	var work sync.WaitGroup
	for w := range 2 {
		work.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("k%04d+%d", rng.IntN(stay), w)
				if err := s.String(key).Put(nil); err != nil {
					t.Error(err)
				}
				if _, err := s.Key(key).Delete(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 5 {
		n, last := 0, ""
		for key := range each(t, s.Keyspace().Range(db.KeyRange{Prefix: "k"})) {
			if key.Key <= last {
				t.Fatalf("%q after %q", key.Key, last)
			}
			if last = key.Key; !strings.Contains(key.Key, "+") {
				n++
			}
		}
		equal(t, fmt.Sprintf("keys that stay, pass %d", i), n, stay)
	}
	close(stop)
	work.Wait()
	equal(t, "keys in the end", ok[int](t)(s.Keyspace().CountRange(db.KeyRange{})), stay)
}
