package db

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/internal/backoff"
	"github.com/stavedb/stave/internal/nap"
	"github.com/stavedb/stave/keydir"
	"github.com/stavedb/stave/structures"
	"github.com/stavedb/stave/ttl"
)

// Eviction: a store that is a cache deletes keys to stay within a bound.
//
// A writer finds before it locks anything that the bound is exceeded, and evicts: for a millisecond at most, so that a
// bound which has been lowered is reached in many steps, of which the background loop makes some as well. What is
// evicted is deleted, some keys with one commit, as if somebody had sent DEL: replicas get that, and evict nothing.
//
// Which keys go is decided by CLOCK (keydir/visits.go): a hand goes over all keys, spares those that have been used
// since it was there, and takes the others. It goes by the hashes of keys, or, for policies that evict only keys with a
// deadline, by their deadlines (ttl.Cursor): so it meets no others. A new key has not been used yet. Where it lies from
// the hand is chance, so it stays for half a turn in the mean.
//
// The bound is on what the entries take, not on what the tables around them hold, which falls only when a table has
// become sparse (keydir.Directory.EntryBytes): by that, a store would be emptied before it looked smaller.

// EvictPolicy says which keys a store evicts, by Redis's name.
type EvictPolicy string

// The policies. Those for the least recently and the least frequently used keys are the same here: CLOCK, which knows
// of a key whether it has been used since the last time that it could have been evicted.
const (
	EvictNone           EvictPolicy = "noeviction"      // none
	EvictAllKeysLRU     EvictPolicy = "allkeys-lru"     // any that has not been used of late
	EvictAllKeysLFU     EvictPolicy = "allkeys-lfu"     // the same
	EvictAllKeysRandom  EvictPolicy = "allkeys-random"  // any
	EvictVolatileLRU    EvictPolicy = "volatile-lru"    // one with a deadline that has not been used of late
	EvictVolatileLFU    EvictPolicy = "volatile-lfu"    // the same
	EvictVolatileRandom EvictPolicy = "volatile-random" // one with a deadline
	EvictVolatileTTL    EvictPolicy = "volatile-ttl"    // the one with the earliest deadline
)

// Evict bounds what a store holds. Nothing is evicted that its policy protects: where there is nothing else, the bound is exceeded.
// A store that is open for reading, or the replica of another, evicts nothing.
type Evict struct {
	// Policy says which keys are evicted. Default: EvictNone.
	Policy EvictPolicy
	// Memory is how many bytes the entries of the index may take: 20 for a key that holds a string, 112 with a
	// deadline, and for a collection what its elements take. Default: 0, no bound.
	Memory int64
	// Disk is how many bytes the directory of the store may take, at least 16 MiB. Live data take at most half of them: by then
	// keys are evicted, so that merges have room. When seven eighths are in use writes wait for room, for a second at most; when fifteen
	// sixteenths are, for five, and then what adds something fails with ErrBound. Deletes never fail. On a disk with less room the bound is what
	// there is. The directory takes more than Disk while a backup or snapshot holds on to merged segments, if the store is a replica whose
	// master has more, and for a while after Disk was lowered. Default: 0, no bound.
	Disk int64
}

// evictOrder is in which order keys are evicted.
type evictOrder uint8

const (
	byClock evictOrder = iota
	byChance
	byDeadline
)

// evictRules are what the policies mean.
var evictRules = map[EvictPolicy]evictRule{
	EvictAllKeysLRU: {}, EvictAllKeysLFU: {}, EvictAllKeysRandom: {order: byChance},
	EvictVolatileLRU: {timed: true}, EvictVolatileLFU: {timed: true}, EvictVolatileRandom: {timed: true, order: byChance},
	EvictVolatileTTL: {timed: true, order: byDeadline},
}

// evictRule is an Evict that evicts.
type evictRule struct {
	timed  bool // only keys with a deadline
	order  evictOrder
	memory int64
	disk   int64
}

// check refuses what has no meaning, with the name of the field.
func (e *Evict) check() error {
	if _, known := evictRules[e.Policy]; !known && e.Policy != EvictNone && e.Policy != "" {
		return fmt.Errorf("%w: Evict.Policy is %q, want the name of a policy", ErrOption, string(e.Policy))
	}
	if e.Memory < 0 {
		return fmt.Errorf("%w: Evict.Memory is %d, want bytes, or 0 for no bound", ErrOption, e.Memory)
	}
	if e.Disk < 0 || e.Disk > 0 && e.Disk < leastDisk {
		return fmt.Errorf("%w: Evict.Disk is %d, want at least %d bytes, or 0 for no bound", ErrOption, e.Disk, leastDisk)
	}
	return nil
}

// evictor is what a store has to evict keys.
type evictor struct {
	is   atomic.Pointer[Evict]
	rule atomic.Pointer[evictRule] // nil: nothing is evicted

	busy  atomic.Int32 // goroutines that evict
	mu    sync.Mutex   // guards the rest; whoever holds it takes no other lock that it would have to wait for
	hand  evictHand
	due   *ttl.Cursor // the hand of policies for keys with a deadline; nil: it begins again
	retry backoff.Backoff
}

// evictHand is a place in the order of all keys.
type evictHand struct {
	ns   int
	from uint64 // the hash
}

// Bounds of eviction.
const (
	evictBudget = time.Millisecond // of a round, or five if it has found nothing by then
	evictSteps  = 4096             // of the hand in a round
	evictBatch  = 64               // keys that one commit deletes
	evictSlack  = 64 << 10         // bytes below the bound that eviction goes, or a 256th of it: it is not for every write

	deadlineBytes = 72 // of a deadline in the index of deadlines, with a key of 16 bytes
	orderedBytes  = 65 // of a key in that of Options.OrderedKeys
)

// SetEvict changes what Options.Evict has said, while the store is used. When it returns nothing is chosen by what held
// before. It fails with ErrOption, and has changed nothing then.
func (s *Store) SetEvict(e Evict) error {
	if err := e.check(); err != nil {
		return fmt.Errorf("db: %w", err)
	}
	s.evictor.mu.Lock()
	defer s.evictor.mu.Unlock()
	if e.Policy == "" {
		e.Policy = EvictNone
	}
	s.evictor.is.Store(&e)
	s.disk.set(s, e.Disk)
	rule, evicts := evictRules[e.Policy]
	if !evicts || e.Memory == 0 && e.Disk == 0 || s.opts.ReadOnly {
		s.evictor.rule.Store(nil)
		s.base.TrackVisits(false)
	} else {
		rule.memory, rule.disk = e.Memory, e.Disk
		s.evictor.rule.Store(&rule)
		s.base.TrackVisits(rule.order == byClock)
	}
	s.idle.Stir(nap.Any) // the loop follows it
	return nil
}

// Evict is what holds at present: Options.Evict, or what SetEvict has said since.
func (s *Store) Evict() Evict {
	if e := s.evictor.is.Load(); e != nil {
		return *e
	}
	return Evict{Policy: EvictNone}
}

// evictable is what Evict.Memory bounds.
func (c *core) evictable() int64 {
	bytes, keys, deadlines := c.base.EntryBytes()
	if c.ordered != nil {
		bytes += orderedBytes * int64(keys)
	}
	return bytes + deadlineBytes*int64(deadlines)
}

// makeRoom evicts keys if the bound is exceeded, and reports whether writes may go on that add something: the bound is kept, or
// will be. Nothing is locked by the caller.
func (s *Store) makeRoom(evict bool) bool {
	rule := s.exceeded()
	if rule == nil || s.expiryIsHeld() && !s.replica.is.Load() { // what replicas get is to stand still
		return true
	}
	if evict && s.guard.check() == nil {
		s.evictSome(rule)
	}
	return !s.exceeds(rule) || s.canEvict(rule)
}

func (s *Store) exceeds(rule *evictRule) bool { return rule.memory > 0 && s.evictable() > rule.memory }

// exceeded is the rule whose bound is exceeded; nil if none is.
func (s *Store) exceeded() *evictRule {
	if rule := s.evictor.rule.Load(); rule != nil && s.exceeds(rule) {
		return rule
	}
	return nil
}

func (s *Store) isOverBound() bool {
	if s.isTight() {
		return true
	}
	rule := s.exceeded()
	return rule != nil && !s.expiryIsHeld() && s.canEvict(rule)
}

// canEvict reports whether there are keys that may be evicted.
func (s *Store) canEvict(rule *evictRule) bool {
	if s.replica.refuses() || s.base.Err() != nil {
		return false
	}
	_, keys, deadlines := s.base.EntryBytes()
	return keys > 0 && !rule.timed || deadlines > 0
}

// evictSome is one round. While one goroutine evicts the others go on, unless the bound is exceeded by much: then they evict, too.
func (s *Store) evictSome(rule *evictRule) {
	e := &s.evictor
	if !s.canEvict(rule) {
		return
	}
	defer e.busy.Add(-1)
	if e.busy.Add(1) > 1 && s.evictable() <= rule.memory+rule.memory/128 || !e.begins(s, rule) {
		return
	}
	target := rule.memory - min(rule.memory/256, evictSlack)
	began, some := time.Now(), false
	for range evictSteps {
		excess, took := s.evictable()-target, time.Since(began)
		if excess <= 0 || took > evictBudget && (some || took > 5*evictBudget) {
			return
		}
		victims, err := s.someVictims(rule, int(min(excess/keydir.EntryBytes+1, evictBatch)))
		done := true
		if err == nil && len(victims) > 0 {
			done, err = s.evictAll(victims, rule.timed, excess, (*txn).weight)
			some = true
		}
		if e.failed(err) {
			s.opts.Logger.Error("eviction", "err", err)
		}
		if !done || err != nil {
			return
		}
	}
}

// begins reports whether a round may begin by a rule.
func (e *evictor) begins(s *Store, rule *evictRule) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.retry.Due() || e.rule.Load() != rule {
		return false
	}
	s.base.TrackVisits(rule.order == byClock)
	if rule.order == byDeadline {
		e.due = nil // there may be an earlier one
	}
	return true
}

// failed notes how a step has ended, and reports whether to say so.
func (e *evictor) failed(err error) (says bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.retry.Worked()
		return false
	}
	const shortest, longest = 100 * time.Millisecond, 10 * time.Second
	return e.retry.Failed(shortest, longest, err)
}

// evictCycle is the part of the background loop, and returns how long to rest after it.
func (s *Store) evictCycle(every time.Duration) (rest time.Duration) {
	e := &s.evictor
	rule := e.rule.Load()
	if rule == nil || s.expiryIsHeld() {
		return every
	}
	if !s.exceeds(rule) {
		e.mu.Lock()
		if e.rule.Load() == rule {
			s.base.TrackVisits(rule.order == byClock) // for the keys and namespaces that there are by now
		}
		e.mu.Unlock()
		return every
	}
	began, before := time.Now(), s.evictable()
	s.evictSome(rule)
	if left := s.evictable(); left > rule.memory && left < before {
		return min(every, time.Since(began)) // half of a core, as expiry
	}
	return every
}

// evictAll evicts keys until they have freed so many bytes, with one commit. It does not wait: done is false if somebody has locked
// what it needs. weigh says how many bytes a key is of; ok is false if it is not there.
func (s *Store) evictAll(victims []nsKey, timed bool, excess int64, weigh weighing) (done bool, err error) {
	keys := make([]string, len(victims))
	for i := range victims {
		keys[i] = victims[i].key
	}
	base, ok, err := s.base.TryBegin(true, keys...)
	if !ok {
		return false, err
	}
	first, err := s.begun(nil, writing, base, err)
	if err != nil {
		return false, err
	}
	defer first.recycle()
	for _, v := range victims {
		freed, err := (*txn)(&Tx{txState: first.Tx.txState, ns: v.ns}).evict(v.key, timed, weigh)
		if err != nil {
			_, err = first.Tx.finish(err)
			return false, err
		}
		if excess -= freed; excess <= 0 {
			break
		}
	}
	_, err = first.Tx.finish(nil) // nobody waits for the disk: what a power cut brings back is evicted again
	return true, err
}

// weighing is what a key is of, in bytes.
type weighing func(t *txn, key string) (bytes int64, ok bool, err error)

// weight is what a key takes of Evict.Memory.
func (t *txn) weight(key string) (bytes int64, ok bool, err error) {
	bytes, ok, err = t.base.Weight(t.ns, key)
	if _, timed := t.Deadline(key); timed {
		bytes += deadlineBytes + keydir.EntryBytes
	}
	return bytes, ok, err
}

// evict deletes a key, if it is still there, and has a deadline where that matters. It returns how many bytes that frees.
func (t *txn) evict(key string, timed bool, weigh weighing) (freed int64, err error) {
	if _, hasDeadline := t.Deadline(key); timed && !hasDeadline {
		return 0, nil
	}
	freed, existed, err := weigh(t, key)
	if err != nil || !existed {
		return 0, err
	}
	existed, err = t.Drop(key)
	if existed && err == nil { // else its time had come
		t.evicted++
		t.touch(key)
		t.note(structures.EventEvicted, key)
	}
	return freed, err
}

// someVictims is chooseVictims, unless the rule has changed.
func (s *Store) someVictims(rule *evictRule, most int) (victims []nsKey, err error) {
	s.evictor.mu.Lock()
	defer s.evictor.mu.Unlock()
	if s.evictor.rule.Load() != rule {
		return nil, nil
	}
	return s.chooseVictims(rule, most)
}

// chooseVictims moves the hand on a little, and returns the keys that it has found there, so many at most.
func (s *Store) chooseVictims(rule *evictRule, most int) (victims []nsKey, err error) {
	bytes := 0
	take := func(ns int, key string) (more bool) {
		victims = append(victims, nsKey{ns, key})
		bytes += len(key)
		return len(victims) < most && bytes < deletesBytes
	}
	if rule.timed {
		s.chooseTimed(rule, take)
		return victims, nil
	}
	used := s.base.Namespaces()
	if len(used) == 0 {
		return nil, nil
	}
	h := &s.evictor.hand
	if rule.order == byChance {
		h.ns, h.from = s.randomNamespace(used), rand.Uint64()
	}
	h.from, err = s.base.Sweep(h.ns, h.from, rule.order == byChance, func(key []byte) bool { return take(h.ns, string(key)) })
	if h.from == 0 {
		h.ns = next(used, h.ns)
	}
	return victims, err
}

// next is the namespace of a list that follows another, which need not be in it.
func next(list []int, ns int) int {
	for _, n := range list {
		if n > ns {
			return n
		}
	}
	return list[0]
}

// randomNamespace is one of a list, each as likely as it has keys.
func (s *Store) randomNamespace(list []int) int {
	total := 0
	for _, ns := range list {
		total += s.base.Len(ns)
	}
	at := rand.IntN(max(total, 1))
	for _, ns := range list {
		if at -= s.base.Len(ns); at < 0 {
			return ns
		}
	}
	return list[0]
}

// chooseTimed is chooseVictims among keys with a deadline.
func (s *Store) chooseTimed(rule *evictRule, take func(ns int, key string) bool) {
	e := &s.evictor
	for range sweptDeadlines {
		var entry ttl.Entry
		ok := false
		switch {
		case rule.order == byChance:
			entry, ok = s.deadlines.Random(rand.Uint64)
		case e.due != nil:
			entry, ok = e.due.Next()
		}
		if !ok { // a turn ends
			if rule.order == byClock {
				s.base.AgeVisits()
			}
			e.due = s.deadlines.Cursor()
			return
		}
		ns, named := s.base.NamespaceOf(entry.Namespace)
		if !named || rule.order == byClock && s.base.Visited(ns, entry.Key) {
			continue
		}
		if !take(ns, entry.Key) {
			return
		}
	}
}

// sweptDeadlines is how many deadlines the hand passes at once: some hundred microseconds.
const sweptDeadlines = 1024

// visited reports whether a key has been used since it could have been evicted. To ask is not to use it.
func (t *Tx) visited(key string) bool { return t.check() == nil && t.store.base.Visited(t.ns, key) }
