package db_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/vfs"
)

// evictModel is a cache and what it must hold: what was put, without what it has told to be evicted.
type evictModel struct {
	t     *testing.T
	rng   *rand.Rand
	mem   *vfs.Mem
	store *db.Store

	mu      sync.Mutex // guards the rest: eviction tells from the background as well
	evict   db.Evict
	changes bool // it changes: either policy may hold
	opened  int  // stores so far; what one does that was killed is of no account
	keys    map[evictKey]evictValue
	evicted int
}

type evictKey struct {
	ns  int
	key string
}

// evictValue is a hash if it has fields.
type evictValue struct {
	text   string
	fields map[string]string
	timed  bool
}

// TestEvictModel does random things to a cache and to a map, changes its bound and its policy, merges, closes, kills and
// opens it again. It holds what was put, but for what it told to be evicted, which no policy had protected; it keeps its
// bound wherever there is something to evict.
func TestEvictModel(t *testing.T) {
	m := &evictModel{t: t, rng: chance.Rand(t), mem: vfs.NewMem(), keys: map[evictKey]evictValue{}}
	m.draw()
	m.open()
	steps := 8000
	if underRace {
		steps = 2000
	}
	for step := range steps {
		m.step()
		if step%250 == 249 {
			m.compare()
			m.now()
		}
	}
	m.compare()
	must(t, m.store.Close())
	t.Logf("%d evicted, %d keys left", m.evicted, len(m.keys))
	if m.evicted < steps/20 {
		t.Errorf("%d evicted in %d steps", m.evicted, steps)
	}
}

// draw picks a bound and a policy.
func (m *evictModel) draw() {
	policies := []db.EvictPolicy{
		db.EvictNone, db.EvictAllKeysLRU, db.EvictAllKeysLFU, db.EvictAllKeysRandom, db.EvictVolatileLRU, db.EvictVolatileLFU, db.EvictVolatileRandom, db.EvictVolatileTTL,
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes = true
	m.evict = db.Evict{Policy: policies[m.rng.IntN(len(policies))], Memory: 1000 + m.rng.Int64N(40_000)}
}

func (m *evictModel) open() {
	m.opened++
	number := m.opened
	m.changes = false
	m.store = ok[*db.Store](m.t)(db.Open("store", seam.With(&db.Options{Evict: m.evict, SegmentSize: 64 << 10, Sync: db.SyncNone}, seam.Options{FS: m.mem})))
	m.store.OnEvents(db.ClassEvicted, func(e db.Event) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if number != m.opened {
			return
		}
		at := evictKey{e.Namespace, e.Key}
		switch value, has := m.keys[at]; {
		case !has:
			m.t.Errorf("%v is evicted, and was not there", at)
		case m.changes:
		case strings.HasPrefix(string(m.evict.Policy), "volatile") && !value.timed:
			m.t.Errorf("%v is evicted by %s, and has no deadline", at, m.evict.Policy)
		case m.evict.Policy == db.EvictNone:
			m.t.Errorf("%v is evicted by nobody", at)
		}
		delete(m.keys, at)
		m.evicted++
	})
}

// update is a transaction on a key, and what it means to the model: that is noted when it is committed, in the order of the log.
func (m *evictModel) update(at evictKey, do func(tx *db.Tx) error, change func(v *evictValue) (exists bool)) {
	view := ok[*db.Store](m.t)(m.store.Use(at.ns))
	must(m.t, view.UpdateKeys([]string{at.key}, func(tx *db.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		return tx.OnCommit(func(db.Ticket) {
			m.mu.Lock()
			defer m.mu.Unlock()
			value := m.keys[at]
			value.fields = maps.Clone(value.fields)
			if delete(m.keys, at); change(&value) {
				m.keys[at] = value
			}
		})
	}))
}

// step is one thing that a user does.
func (m *evictModel) step() {
	r := m.rng
	at := evictKey{r.IntN(2), fmt.Sprint("s", r.IntN(3000))}
	text := strings.Repeat("x", r.IntN(50))
	switch p := r.IntN(100); {
	case p < 25:
		m.update(at, func(tx *db.Tx) error { return tx.String(at.key).Put([]byte(text)) }, func(v *evictValue) bool {
			*v = evictValue{text: text}
			return true
		})
	case p < 50:
		m.update(at, func(tx *db.Tx) error {
			return tx.String(at.key).Put([]byte(text), db.TTL(time.Hour+time.Duration(r.IntN(1000))*time.Second))
		}, func(v *evictValue) bool {
			*v = evictValue{text: text, timed: true}
			return true
		})
	case p < 60:
		at.key, text = "h"+at.key, fmt.Sprint(r.IntN(100))
		timed := r.IntN(3) == 0
		m.update(at, func(tx *db.Tx) error {
			_, err := tx.Hash(at.key).Put(text, []byte(text))
			if timed && err == nil {
				_, err = tx.Key(at.key).Expire(time.Hour)
			}
			return err
		}, func(v *evictValue) bool {
			if v.fields == nil {
				v.fields = map[string]string{}
			}
			v.fields[text] = text
			v.timed = v.timed || timed
			return true
		})
	case p < 65:
		m.update(at, func(tx *db.Tx) error { return first(tx.Key(at.key).Delete()) }, func(*evictValue) bool { return false })
	case p < 70:
		existed := false
		m.update(at, func(tx *db.Tx) (err error) {
			existed, err = tx.Key(at.key).Exists()
			if err == nil {
				_, err = tx.Key(at.key).Persist()
			}
			return err
		}, func(v *evictValue) bool {
			v.timed = false
			return existed
		})
	default: // a use
		view := ok[*db.Store](m.t)(m.store.Use(at.ns))
		if _, err := view.String(fmt.Sprint("s", r.IntN(300))).Get(); err != nil && !errors.Is(err, db.ErrNotFound) {
			m.t.Error(err)
		}
	}
}

// now does what happens now and then.
func (m *evictModel) now() {
	switch m.rng.IntN(6) {
	case 0, 1:
		m.draw()
		must(m.t, m.store.SetEvict(m.evict))
		m.mu.Lock()
		m.changes = false
		m.mu.Unlock()
	case 2:
		must(m.t, first(m.store.Merge(context.Background(), db.MergeOptions{All: true})))
	case 3:
		must(m.t, m.store.Close())
		m.open()
		m.compare()
	case 4: // killed
		old, mem := m.store, m.mem
		must(m.t, old.View(func(*db.Tx) error {
			m.mem = mem.Clone()
			m.mu.Lock()
			defer m.mu.Unlock()
			m.opened++
			return nil
		}))
		must(m.t, old.Close())
		m.draw()
		m.open()
		m.compare()
	case 5:
		must(m.t, m.store.SetEvict(db.Evict{}))
		must(m.t, m.store.SetEvict(m.evict))
	}
}

// compare compares everything, at one moment, after the store has had the time to keep its bound.
func (m *evictModel) compare() {
	m.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && m.evict.Policy != db.EvictNone && m.store.Stats().EntryBytes > m.evict.Memory; {
		if !serverside.DB.MakeRoom(m.store, true) {
			break
		}
		time.Sleep(time.Millisecond) // a segment is being sealed, perhaps
	}
	must(m.t, m.store.View(func(tx *db.Tx) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		found := 0
		for ns := range 2 {
			in := ok[*db.Tx](m.t)(tx.Use(ns))
			for _, key := range ok[[]string](m.t)(in.Keyspace().Keys("*")) {
				found++
				if _, has := m.keys[evictKey{ns, key}]; !has {
					m.t.Errorf("%d %s is too much", ns, key)
				}
			}
		}
		timed := 0
		for at, want := range m.keys {
			m.compareKey(ok[*db.Tx](m.t)(tx.Use(at.ns)), at, want)
			if want.timed {
				timed++
			}
		}
		equal(m.t, "keys", found, len(m.keys))
		evictable := len(m.keys)
		if strings.HasPrefix(string(m.evict.Policy), "volatile") {
			evictable = timed
		}
		if got := m.store.Stats().EntryBytes; m.evict.Policy != db.EvictNone && evictable > 0 && got > m.evict.Memory {
			m.t.Errorf("%d bytes with a bound of %d, though %s could evict %d keys", got, m.evict.Memory, m.evict.Policy, evictable)
		}
		return nil
	}))
	if m.t.Failed() {
		m.t.FailNow()
	}
	_, err := m.store.Check(context.Background(), func(f db.Finding) { m.t.Error(f) })
	must(m.t, err)
}

func (m *evictModel) compareKey(tx *db.Tx, at evictKey, want evictValue) {
	m.t.Helper()
	ttl, err := tx.Key(at.key).TTL()
	if err != nil || ttl != db.NoTTL != want.timed {
		m.t.Errorf("%v has %v to live, %v; want a deadline: %v", at, ttl, err, want.timed)
	}
	if want.fields == nil {
		equal(m.t, at.key, string(ok[[]byte](m.t)(tx.String(at.key).Get())), want.text)
		return
	}
	fields := ok[[]string](m.t)(tx.Hash(at.key).Fields())
	if slices.Sort(fields); !slices.Equal(fields, slices.Sorted(maps.Keys(want.fields))) {
		m.t.Errorf("%v has %q", at, fields)
	}
}
