package tracking

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/internal/pubsub"
)

// Table knows which clients may have cached which keys. A key is one name in all databases, as in Redis.
type Table struct {
	MaxKeys atomic.Int64 // that are in the table; 0: no limit

	store  *db.Store
	limits *pubsub.Limits         // of mailboxes
	find   func(id int64) *Client // a connected client; nil if there is none

	mu       sync.Mutex // guards the rest
	stop     func()     // listening to the store; nil while no client tracks
	clients  map[int64]*Client
	readers  map[string]readers // of each key
	items    int                // readers of all keys
	bytes    int64              // of memory that keys and readers take, about
	prefixes map[string]map[*Client]struct{}
	lengths  []int // of the prefixes, ascending
}

// Init prepares a table of changes in a store. find returns a connected client.
func (t *Table) Init(store *db.Store, limits *pubsub.Limits, find func(id int64) *Client) {
	t.store, t.limits, t.find = store, limits, find
	t.MaxKeys.Store(defaultMaxKeys)
}

// What entries of the table take in memory besides the bytes of the key.
const (
	keyOverhead    = 96
	readerOverhead = 16
)

// readers are the ids of clients that have read a key. Those of clients that have ended, or do not track any more, stay
// until the key changes: an id is never used again.
type readers struct {
	few  []int64
	many map[int64]struct{} // instead, once they are many
}

const fewReaders = 16

// add adds a reader, and reports whether it is new.
func (r *readers) add(id int64) bool {
	switch {
	case r.many != nil:
		before := len(r.many)
		r.many[id] = struct{}{}
		return len(r.many) > before
	case slices.Contains(r.few, id):
		return false
	case len(r.few) < fewReaders:
		r.few = append(r.few, id)
		return true
	}
	r.many = make(map[int64]struct{}, 2*fewReaders)
	for _, other := range r.few {
		r.many[other] = struct{}{}
	}
	r.many[id] = struct{}{}
	r.few = nil
	return true
}

func (r *readers) len() int { return len(r.few) + len(r.many) }

// each calls fn with every reader, in ascending order: clients get their messages in the same order each time.
func (r *readers) each(fn func(id int64)) {
	ids := r.few
	if r.many != nil {
		ids = slices.Collect(maps.Keys(r.many))
	}
	slices.Sort(ids)
	for _, id := range ids {
		fn(id)
	}
}

// Add makes a client one that tracks as mode says, which it may have done before in another way.
func (t *Table) Add(c *Client, mode *Mode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.broken.Store(false)
	c.mode.Store(mode)
	if t.stop == nil {
		t.clients = make(map[int64]*Client)
		t.readers = make(map[string]readers)
		t.prefixes = make(map[string]map[*Client]struct{})
		t.stop = serverside.DB.OnChangesAndReads(t.store, func(changes []serverside.Change, _ uint64) { t.changed(changes) })
	}
	t.clients[c.ID] = c
	for _, prefix := range mode.Prefixes {
		if t.prefixes[prefix] == nil {
			t.prefixes[prefix] = make(map[*Client]struct{})
		}
		t.prefixes[prefix][c] = struct{}{}
	}
	t.measurePrefixes()
}

// Remove is its inverse. With the last client the table goes: nobody reports changes any more.
func (t *Table) Remove(c *Client) {
	c.broken.Store(false)
	mode := c.Mode()
	if mode == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.mode.Store(nil)
	delete(t.clients, c.ID)
	for _, prefix := range mode.Prefixes {
		if delete(t.prefixes[prefix], c); len(t.prefixes[prefix]) == 0 {
			delete(t.prefixes, prefix)
		}
	}
	t.measurePrefixes()
	if len(t.clients) == 0 {
		t.stop()
		t.stop = nil
		t.clear()
	}
}

// measurePrefixes notes which lengths prefixes have: a key is looked up once for each. The mutex is held.
func (t *Table) measurePrefixes() {
	t.lengths = t.lengths[:0]
	for prefix := range t.prefixes {
		t.lengths = append(t.lengths, len(prefix))
	}
	slices.Sort(t.lengths)
	t.lengths = slices.Compact(t.lengths)
}

// clear forgets all keys. The mutex is held.
func (t *Table) clear() {
	t.readers, t.items, t.bytes = make(map[string]readers), 0, 0
}

// Remember notes that a client has read keys, which are locked.
func (t *Table) Remember(c *Client, keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		t.rememberLocked(c, key)
	}
}

func (t *Table) rememberLocked(c *Client, key string) {
	if t.clients[c.ID] == nil {
		return
	}
	r, known := t.readers[key]
	if most := int(t.MaxKeys.Load()); !known && most > 0 {
		t.evict(most-1, evictAtOnce)
	}
	if !r.add(c.ID) {
		return
	}
	t.readers[key] = r
	t.items++
	t.bytes += readerOverhead
	if !known {
		t.bytes += int64(len(key)) + keyOverhead
	}
}

// defaultMaxKeys is Redis's default of tracking-table-max-keys.
const defaultMaxKeys = 1_000_000

// evictAtOnce bounds for how long the mutex is held while keys are evicted.
const evictAtOnce = 100

// evict takes keys out of the table until it has no more than some, but not more than atOnce, and reports whether it
// has to go on. Which ones, the order of Go's maps decides, which is random. The mutex is held.
func (t *Table) evict(most, atOnce int) (more bool) {
	for key := range t.readers {
		if len(t.readers) <= most {
			return false
		}
		if atOnce--; atOnce < 0 {
			return true
		}
		t.invalidate(key, 0)
	}
	return false
}

// Limit sets how many keys are in the table, and evicts what is above; 0 is no limit.
func (t *Table) Limit(most int64) {
	t.MaxKeys.Store(most)
	for more := most > 0; more; {
		more = func() bool {
			t.mu.Lock()
			defer t.mu.Unlock()
			return t.evict(int(most), evictAtOnce)
		}()
	}
}

// changed reports what a commit has changed. The store calls it with the keys locked. What came before a change of a
// whole namespace is reported with that, to all: a database that is swapped has other values under the same names.
func (t *Table) changed(changes []serverside.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(changes) - 1; i >= 0; i-- {
		if changes[i].Whole {
			t.clear()
			for _, client := range t.clients {
				t.send(client, pubsub.Message{Kind: pubsub.ToReader})
			}
			changes = changes[i+1:]
			break
		}
	}
	for i := range changes {
		c := &changes[i]
		if !c.Read {
			t.invalidate(c.Key, c.Origin)
		} else if client := t.clients[c.Origin]; client != nil {
			t.rememberLocked(client, c.Key)
		}
	}
	if len(t.prefixes) > 0 {
		t.broadcast(changes)
	}
}

// invalidate reports a key to its readers, and forgets them. The mutex is held.
func (t *Table) invalidate(key string, origin int64) {
	r, known := t.readers[key]
	if !known {
		return
	}
	delete(t.readers, key)
	t.items -= r.len()
	t.bytes -= int64(len(key)) + keyOverhead + readerOverhead*int64(r.len())
	keys := []string{key}
	r.each(func(id int64) {
		c := t.clients[id]
		if c == nil {
			return
		}
		if mode := c.Mode(); !mode.Broadcast && !(mode.NoLoop && id == origin) {
			t.send(c, pubsub.Message{Kind: pubsub.ToReader, Keys: keys})
		}
	})
}

// broadcast reports the changed keys to the clients that have asked for their prefixes: one message for each prefix,
// with the keys sorted. The mutex is held.
func (t *Table) broadcast(changes []serverside.Change) {
	matched := map[string][]serverside.Change{}
	for _, c := range changes {
		if c.Read {
			continue
		}
		for _, n := range t.lengths {
			if n > len(c.Key) {
				break
			}
			if prefix := c.Key[:n]; t.prefixes[prefix] != nil {
				matched[prefix] = append(matched[prefix], c)
			}
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(matched)) {
		for client := range t.prefixes[prefix] {
			ignored := int64(-1)
			if client.Mode().NoLoop {
				ignored = client.ID
			}
			var keys []string
			for _, c := range matched[prefix] {
				if c.Origin != ignored {
					keys = append(keys, c.Key)
				}
			}
			slices.Sort(keys)
			if keys = slices.Compact(keys); len(keys) > 0 {
				t.send(client, pubsub.Message{Kind: pubsub.ToReader, Keys: keys})
			}
		}
	}
}

// send posts a message to a client, or to the one to which it redirects. If that has gone the client is informed
// instead. The mutex is held.
func (t *Table) send(c *Client, m pubsub.Message) {
	redirect := c.Mode().Redirect
	if redirect == 0 {
		c.Mail.Post(t.limits, m)
		return
	}
	to := t.find(redirect)
	if to == nil {
		c.broken.Store(true)
		c.Mail.Post(t.limits, pubsub.Message{Kind: pubsub.ToOrphan})
		return
	}
	m.Kind = pubsub.ToRedirected
	to.Mail.Post(t.limits, m)
}

// Usage is what INFO shows of the table.
type Usage struct{ Clients, Keys, Items, Prefixes int }

// Usage returns how much is in the table.
func (t *Table) Usage() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Usage{len(t.clients), len(t.readers), t.items, len(t.prefixes)}
}

// Held is the memory of the table in bytes, about.
func (t *Table) Held() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}
