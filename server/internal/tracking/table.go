package tracking

import (
	"maps"
	"slices"
	"strings"
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
	prefixes prefixIndex
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
	added := mode.Prefixes
	if c.Mode() != nil {
		added = mode.added
	}
	mode.added = nil // they are among all
	c.broken.Store(false)
	c.mode.Store(mode)
	if t.stop == nil {
		t.clients = make(map[int64]*Client)
		t.readers = make(map[string]readers)
		t.stop = serverside.DB.OnChangesAndReads(t.store, func(changes []serverside.Change, _ uint64) { t.changed(changes) })
	}
	t.clients[c.ID] = c
	t.prefixes.add(c, added)
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
	t.prefixes.remove(c, mode.Prefixes)
	if len(t.clients) == 0 {
		t.stop()
		t.stop = nil
		t.clear()
	}
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
		t.evict(most-1, int64(most)*keyBytes-int64(len(key)), evictAtOnce)
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

// keyBytes is how many bytes of memory the keys of the table take at most, on the average of as many as there may be: a
// client chooses how long its keys are.
const keyBytes = 1 << 10

// evictAtOnce bounds for how long the mutex is held while keys are evicted.
const evictAtOnce = 100

// evict takes keys out of the table until it has no more than some, and no more than so many bytes, but not more than
// atOnce, and reports whether it has to go on. Which ones, the order of Go's maps decides, which is random. The mutex is held.
func (t *Table) evict(most int, bytes int64, atOnce int) (more bool) {
	for key := range t.readers {
		if len(t.readers) <= most && t.bytes <= bytes {
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
			return t.evict(int(most), most*keyBytes, evictAtOnce)
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
	if t.prefixes.count > 0 {
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
	matched := map[*followed][]serverside.Change{}
	for _, c := range changes {
		if !c.Read {
			t.prefixes.each(c.Key, func(f *followed) { matched[f] = append(matched[f], c) })
		}
	}
	for _, f := range slices.SortedFunc(maps.Keys(matched), func(a, b *followed) int { return strings.Compare(a.prefix, b.prefix) }) {
		for client := range f.clients {
			ignored := int64(-1)
			if client.Mode().NoLoop {
				ignored = client.ID
			}
			var keys []string
			for _, c := range matched[f] {
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
	return Usage{len(t.clients), len(t.readers), t.items, t.prefixes.count}
}

// Held is the memory of the table in bytes, about.
func (t *Table) Held() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}
