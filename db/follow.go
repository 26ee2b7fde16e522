package db

import (
	"context"
	"fmt"
	"slices"

	"github.com/stavedb/stave/bitcask"
	"github.com/stavedb/stave/internal/serverside/calls"
	"github.com/stavedb/stave/ttl"
)

// Following: a store that was opened with Options.Follow applies what the writer of the directory commits
// (bitcask/follow.go). Each commit is applied with its keys locked, so a transaction sees whole ones; and with the keys
// locked this package brings its deadlines and its ordered keys in step, marks watches and calls the listeners of
// OnChanges. Waiters for streams are served after that. Keyspace events are not reported: they name operations, and the
// log has only what these wrote.

// FollowState says how far a store that follows has got.
type FollowState = bitcask.FollowState

// ErrNotFollowing is returned for a store that was not opened with Options.Follow.
var ErrNotFollowing = bitcask.ErrNotFollowing

// ErrRolledBack is returned by a read of a store that follows, of what its writer has rolled back after a write that
// failed half way. It passes by itself: read again.
var ErrRolledBack = bitcask.ErrRolledBack

// Position is the number of the last record of the last commit that the store shows. Each record has a number, in the
// order of the commits; all stores of one directory give a commit the same ones.
func (s *Store) Position() uint64 { return s.base.Sequence() }

// WaitPosition returns when the store shows all commits up to a position: in a store that follows, once the writer has
// made them. Errors:
// ErrNotFollowing if it does not follow, and is not there; ErrClosed; that of FollowState, once a listener has ended
// what follows; the context's.
func (s *Store) WaitPosition(ctx context.Context, position uint64) error {
	if err := s.guard.check(); err != nil {
		return err
	}
	return s.base.WaitSequence(ctx, position)
}

// FollowState says how far a store that follows has got, and whether it can go on. Err of any other store is
// ErrNotFollowing.
func (s *Store) FollowState() FollowState { return s.base.FollowState() }

// follow begins to follow.
func (s *Store) follow() error {
	return s.base.Follow(bitcask.Following{
		Deadline:  func(ev bitcask.DeadlineEvent) { noteReplayed(s.deadlines, ev) },
		Applied:   s.applied,
		Reloading: s.reloading,
	})
}

// loadingAgain takes the deadlines of a store that is read again.
func (c *core) loadingAgain() (func(bitcask.DeadlineEvent), bool) {
	next := c.deadlines.Fresh()
	c.reloaded = next
	return func(ev bitcask.DeadlineEvent) { noteReplayed(next, ev) }, false
}

// applied brings the store in step with a commit, whose keys are locked.
func (s *Store) applied(f *bitcask.Followed) (after func()) {
	for _, space := range f.Dropped {
		s.fields.DropNamespace(space)
		if s.ordered != nil {
			s.ordered.drop(space)
		}
	}
	if len(f.Keys) == 0 { // it may be the note of what its writer has shown as expired
		s.clock.loadShown(s.base)
	}
	wantChanges := s.listeners.wantChanges.Load()
	waited := s.watchers.keys.Load() != 0
	var changes []calls.Change
	var awaited []nsKey
	for i := range f.Keys {
		k := &f.Keys[i]
		if k.FirstFieldDeadline > 0 {
			s.fields.Set(k.Space, k.Key, k.FirstFieldDeadline)
		} else if s.fields.Len(k.Space) > 0 {
			s.fields.Clear(k.Space, k.Key)
		}
		if s.ordered != nil {
			s.ordered.set(k.Space, k.Key, k.Type.Public())
		}
		if !wantChanges && !waited {
			continue
		}
		ns, named := s.base.NamespaceOf(k.Space)
		if !named {
			continue
		}
		one := calls.Change{Namespace: ns, Key: k.Key}
		if n := len(changes); n == 0 || changes[n-1] != one {
			changes = append(changes, one)
			awaited = s.watchers.noteFollowed(awaited, nsKey{ns, k.Key})
		}
	}
	for _, ns := range f.Whole {
		changes = append(changes, calls.Change{Namespace: ns, Whole: true})
		awaited = s.watchers.noteFollowedIn(awaited, ns)
	}
	s.tellChanges(f.Sequence, changes)
	return s.serveFollowed(awaited)
}

// tellChanges notifies the listeners of OnChanges. One that panics is not the business of the writer, which is another
// store.
func (s *Store) tellChanges(sequence uint64, changes []calls.Change) {
	defer func() {
		if p := recover(); p != nil {
			s.opts.Logger.Error("a listener to changes has panicked", "panic", fmt.Sprint(p))
		}
	}()
	s.notifyListeners(Ticket(sequence+1), nil, changes)
}

// serveFollowed is what serves the waiters for keys when nothing is locked.
func (s *Store) serveFollowed(awaited []nsKey) (after func()) {
	if len(awaited) == 0 {
		return nil
	}
	awaited = slices.Clone(awaited)
	return func() {
		queue := make([]deferral, len(awaited))
		for i, p := range awaited {
			queue[i].nsKey = p
		}
		s.serveAfter(queue)
	}
}

// reloading prepares the exchange of all content.
func (s *Store) reloading(ctx context.Context, fresh *bitcask.Store) (install func() (after func()), err error) {
	fields := s.fields.Fresh()
	if err := fresh.EachFieldDeadline(fields.Set); err != nil {
		return nil, err
	}
	var ordered *orderedKeys
	if s.ordered != nil {
		if ordered, err = newOrderedKeys(ctx, fresh); err != nil {
			return nil, err
		}
	}
	before := s.base.Namespaces()
	return func() (after func()) {
		s.deadlines.Take(s.reloadedDeadlines())
		s.fields.Take(fields)
		s.clock.loadShown(fresh)
		if ordered != nil {
			s.ordered.take(ordered)
		}
		namespaces := append(before, s.base.Namespaces()...)
		slices.Sort(namespaces)
		var changes []calls.Change
		var awaited []nsKey
		for _, ns := range slices.Compact(namespaces) {
			changes = append(changes, calls.Change{Namespace: ns, Whole: true})
			awaited = s.watchers.noteFollowedIn(awaited, ns)
		}
		s.tellChanges(fresh.Sequence(), changes)
		return s.serveFollowed(awaited)
	}, nil
}

// reloadedDeadlines are the deadlines that loadingAgain has taken.
func (c *core) reloadedDeadlines() *ttl.Deadlines {
	d := c.reloaded
	c.reloaded = nil
	return d
}

// take replaces all names by those of other, which nobody else uses.
func (o *orderedKeys) take(other *orderedKeys) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spaces, o.err = other.spaces, other.err
	o.changes.Add(1)
}

// noteFollowed marks the watches of a key as changed, and appends it if it is waited for.
func (o *watchers) noteFollowed(awaitedKeys []nsKey, p nsKey) []nsKey {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w := range o.watches[p] {
		w.changed.Store(true)
	}
	if o.queues[awaited{p, TypeStream}] != nil {
		awaitedKeys = append(awaitedKeys, p)
	}
	return awaitedKeys
}

// noteFollowedIn is noteFollowed for all keys of a namespace.
func (o *watchers) noteFollowedIn(awaitedKeys []nsKey, ns int) []nsKey {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p, watches := range o.watches {
		if p.ns != ns {
			continue
		}
		for w := range watches {
			w.changed.Store(true)
		}
	}
	for at := range o.queues {
		if at.ns == ns {
			awaitedKeys = append(awaitedKeys, at.nsKey)
		}
	}
	return awaitedKeys
}
