package db

import (
	"cmp"
	"context"
	"time"

	"github.com/stavedb/stave/internal/backoff"
	"github.com/stavedb/stave/internal/nap"
	"github.com/stavedb/stave/ttl"
)

// The background cycle that deletes what has expired. Lazy expiry, of a key that a call meets, is in txn.go.

// Bounds of one run of the expiry cycle.
const (
	expiryBudget = 2 * time.Millisecond
	expiryMax    = 10_000 // keys
	expiryBatch  = 128    // keys, whose stripes are locked together for some 200 us
)

// idleRest is how long the cycle sleeps while nothing becomes due, unless its usual rest is longer. A deadline that is earlier, and
// a collection that is dropped, end the sleep.
const idleRest = time.Second

// expireLoop deletes expired keys, evicts others, and releases the memory of dropped collections until the store
// closes.
func (s *Store) expireLoop(ctx context.Context) {
	every := s.opts.ExpireEvery
	if every < 0 {
		every = 100 * time.Millisecond
	}
	tick := time.NewTimer(every)
	defer tick.Stop()
	var retry backoff.Backoff
	for rest := every; ; {
		if rest > 0 {
			tick.Reset(rest)
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		if ctx.Err() != nil {
			return
		}
		rest = every
		if s.opts.ExpireEvery > 0 && retry.Due() {
			rest = s.expireCycle(every, &retry)
		}
		rest = min(rest, s.evictCycle(every))
		_, gone := s.clock.read()
		soon := gone + idleRest.Milliseconds()
		due := func() bool { return s.opts.ExpireEvery > 0 && (s.deadlines.AnyDue(soon) || s.fields.AnyDue(soon)) }
		if released := s.base.DrainDropped(); !released && rest == every && every < idleRest && !due() && !s.idle.Sleep(ctx.Done(), nap.Until(idleRest), soon, due) {
			rest = 0
		}
	}
}

// expireCycle is one run of the expiry cycle, and returns how long to rest after it. After a run that fails and deletes
// nothing, perhaps because the store takes no writes, the waits grow: what has expired is hidden from readers all the
// same.
func (s *Store) expireCycle(every time.Duration, retry *backoff.Backoff) (rest time.Duration) {
	const longest = 10 * time.Second
	if s.expiryIsHeld() {
		return every
	}
	began := time.Now()
	n, err := s.Expire(expiryBudget, expiryMax)
	took := time.Since(began)
	switch {
	case err == nil:
		if retry.Worked() {
			s.opts.Logger.Info("expiry cycle works again")
		}
	case n > 0:
	case retry.Failed(every, max(longest, every), err):
		s.opts.Logger.Error("expiry cycle", "err", err)
	}
	return expiryRest(every, took, n > 0 && (n >= expiryMax || took >= expiryBudget))
}

// expiryRest returns the usual rest, or, after a run that reached its bounds, as long as the run took: a cycle that does not keep
// up uses half of a core, and the other half is for those that use the store.
func expiryRest(every, took time.Duration, behind bool) time.Duration {
	if behind {
		return min(every, took)
	}
	return every
}

func (s *Store) setExpiryCycle(on bool) { s.noExpiry.Store(!on) }

// Expire reaps due keys and fields, earliest first, until the budget or the
// number of keys is used up, and returns how many. Of one hash it reaps a
// thousand fields at a time. The background cycle calls it every
// Options.ExpireEvery, and more often while it leaves due keys. Of a replica it reaps nothing: its master does.
func (s *Store) Expire(budget time.Duration, most int) (int, error) {
	if s.replica.is.Load() {
		return 0, nil
	}
	_, gone := s.clock.read()
	return s.expireUntil(gone, budget, most, func(view *Store) *observation { return view.observation() })
}

// expireUntil is Expire for what is due at a moment that has passed. observe begins the observation of a transaction; nil: it
// is a part of another call.
func (s *Store) expireUntil(moment int64, budget time.Duration, most int, observe func(*Store) *observation) (int, error) {
	n := 0
	keys := ttl.Queue{Deadlines: s.deadlines, Batch: expiryBatch, Expire: func(space uint32, due []ttl.Entry) (int, error) {
		deleted, err := s.reapAll(space, due, observe)
		n += deleted
		return deleted, err
	}}
	fields := ttl.Queue{Deadlines: s.fields, Expire: func(space uint32, due []ttl.Entry) (int, error) {
		reaped, err := s.reapFields(space, due[0].Key, observe)
		n += reaped
		return min(reaped, 1), err
	}}
	_, err := ttl.Cycle(moment, budget, most, keys, fields)
	return n, err
}

// deletesBytes bounds the names that one commit of a call deletes that needs not be atomic: on a full disk it must find room
// as a single delete does.
const deletesBytes = 16_000

// deletedTogether returns how many of a list, from its beginning on, one commit deletes: at least one.
func deletedTogether[T any](list []T, name func(T) string) int {
	n, size := 1, len(name(list[0]))
	for ; n < len(list) && size+len(name(list[n])) <= deletesBytes; n++ {
		size += len(name(list[n]))
	}
	return n
}

// reapAll is reap in as many transactions as long names need. It returns the first error.
func (s *Store) reapAll(space uint32, due []ttl.Entry, observe func(*Store) *observation) (deleted int, err error) {
	for len(due) > 0 {
		n := deletedTogether(due, func(e ttl.Entry) string { return e.Key })
		some, failed := s.reap(space, due[:n], observe)
		deleted += some
		err = cmp.Or(err, failed)
		due = due[n:]
	}
	return deleted, err
}

// reap deletes, in one transaction, the keys of a space whose deadline is still the one that was seen, and returns how
// many. A damaged key goes as well.
func (s *Store) reap(space uint32, due []ttl.Entry, observe func(*Store) *observation) (deleted int, err error) {
	ns, ok := s.base.NamespaceOf(space)
	if !ok {
		return 0, nil
	}
	names := make([]string, len(due))
	for i := range due {
		names[i] = due[i].Key
	}
	view := &Store{core: s.core, ns: ns}
	first, err := view.beginReaping(names, observe)
	if err != nil {
		return 0, err
	}
	defer first.recycle()
	t := (*txn)(&first.Tx)
	if s.base.Space(ns) != space { // swapped before the keys were locked: it names another one now
		return 0, first.Tx.end(nil)
	}
	first.Tx.prefetch() // due together, they lie anywhere
	for _, e := range due {
		if now, had := s.deadlines.Get(space, e.Key); !had || now != e.Deadline || !first.Tx.due(now) {
			continue
		}
		existed, derr := t.expire(e.Key)
		if derr != nil {
			return 0, first.Tx.end(derr)
		}
		if existed {
			deleted++
		} else {
			t.noteDeadline(e.Key, 0) // a deadline of nothing
		}
	}
	if err = first.Tx.end(nil); err != nil {
		return 0, err // nothing has happened
	}
	return deleted, nil
}
