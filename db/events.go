package db

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/internal/serverside/calls"
	"github.com/stavedb/stave/structures"
)

// Events. A call of structures ends by naming what it did, as Redis does: Txn.Notify(EventHSet, key). A call made of
// others (LMOVE, SUNIONSTORE) suppresses theirs and names itself. The transaction keeps the events, drops those after a
// savepoint that it rolls back to, and reports them between its commit and the unlocking of its stripes: every reported
// event has happened, and those of a key come in the order of its commits. OnEvents is called right there. Events is a
// bounded buffer after it, which a loop empties. When it is full, events are lost, and counted at the position of the
// gap: a listener must never delay a writer, and one that must miss nothing reads the store again when it sees a gap.
// An event is reported before its commit is on disk; its ticket is what to wait with.

// Event says what a commit did to a key.
type Event struct {
	Namespace int
	Key       string // "" for an event of a whole namespace
	Kind      EventKind
	// Ticket is of the commit. The commit is visible already, but with SyncAlways it may not be on disk yet: a listener
	// that must not act on what a power cut may undo calls Store.WaitDurable with it first.
	Ticket Ticket
	// Lost is how many events the subscription lost directly before this one, because its buffer was full.
	Lost uint64
}

// EventOptions say what a subscription is about. The zero value is every event of the namespace but "new".
type EventOptions struct {
	// Classes are the events to receive. Default: AllClasses.
	Classes EventClass
	// Everywhere is for the events of all namespaces. Default: those of the store's own.
	Everywhere bool
	// Match is a glob pattern that the key must match. Default: any key.
	Match string
	// Buffer is how many events wait for a slow listener; those for which there is no room are lost, and counted.
	// Default: 4096.
	Buffer int
}

const defaultEventBuffer = 4096

// Events is a subscription to what happens to keys. Its methods may be called from any goroutine.
//
// It reports all commits that begin after Store.Events has returned, and nothing that was rolled back. The events of
// one key come in the order of its commits, and those of one commit in the order in which they happened; commits on
// different keys come in the order in which they were made, or in another if they were made at the same time. An
// expired key is reported when it is deleted, which is when a write finds it or the expiry cycle reaches it, not when
// its time comes. A key that is set with a deadline reports "set" and "expire", a collection whose last element goes
// "del" after its own event.
//
// A listener never delays a writer: see EventOptions.Buffer. Without listeners, events cost a write nothing.
type Events struct {
	core    *core
	ns      int // -1: all
	options EventOptions
	own     *listener

	mu     sync.Mutex // guards the rest
	buf    []Event
	head   int
	gap    uint64 // lost since the last event that was not
	lost   uint64
	closed bool
	ready  chan struct{} // has one element if buf has, or closed is set
}

// Events subscribes to what happens to the keys of the namespace from now on. Close ends it, and so does the store's.
// It waits for running transactions, and fails with ErrNested within one of its own.
func (s *Store) Events(o EventOptions) (*Events, error) {
	if o.Classes == 0 {
		o.Classes = structures.AllClasses
	}
	if o.Buffer <= 0 {
		o.Buffer = defaultEventBuffer
	}
	e := &Events{core: s.core, ns: s.ns, options: o, ready: make(chan struct{}, 1)}
	if o.Everywhere {
		e.ns = -1
	}
	if err := s.guard.check(); err != nil {
		return nil, err
	}
	// Running transactions have already done unreported work: wait for them.
	t, err := s.base.BeginAll(false)
	defer t.Recycle()
	if err != nil {
		return nil, err
	}
	e.own = s.listen(&listener{classes: o.Classes, hear: e.hear, shut: e.shut})
	return e, nil
}

// OnEvents calls fn with every event of the classes, of all namespaces, until stop is called. It is for programs that
// pass events on in order; Events suits all others. fn runs within the commit, while its keys are locked: it must be
// quick, and must neither wait nor use the store, which fails with ErrNested. It may get only a part of the events of
// transactions that run when OnEvents is called. If fn panics, the writer gets the panic after all other listeners have
// got the commit, which stands.
func (s *Store) OnEvents(classes EventClass, fn func(Event)) (stop func()) {
	l := s.listen(&listener{classes: classes, hear: fn, shut: func() {}, foreign: true})
	return func() { s.unlisten(l) }
}

// All ranges over the events as they come, until ctx ends, or the subscription or the store is closed and nothing is
// left. Several loops share the events among them.
func (e *Events) All(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for ctx.Err() == nil {
			event, ok, closed := e.next()
			switch {
			case ok:
				if !yield(event) {
					return
				}
				continue
			case closed:
				return
			}
			select {
			case <-e.ready:
			case <-ctx.Done():
			}
		}
	}
}

// Lost is how many events have been lost so far because the buffer was full.
func (e *Events) Lost() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lost
}

// Close ends the subscription. It may be called twice.
func (e *Events) Close() {
	e.core.unlisten(e.own)
	e.shut()
}

func (e *Events) shut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.signal()
}

// hear takes an event, if it is of its classes and there is room.
func (e *Events) hear(event Event) {
	if e.ns >= 0 && event.Namespace != e.ns || e.options.Match != "" && !structures.Match(e.options.Match, []byte(event.Key)) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return
	case len(e.buf)-e.head == e.options.Buffer:
		e.gap++
		e.lost++
		return
	case e.head > 0 && len(e.buf) == cap(e.buf):
		e.buf = slices.Delete(e.buf, 0, e.head) // there is room in front
		e.head = 0
	}
	event.Lost, e.gap = e.gap, 0
	e.buf = append(e.buf, event)
	e.signal()
}

// next takes an event out of the buffer.
func (e *Events) next() (event Event, ok, closed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.head == len(e.buf) {
		return Event{}, false, e.closed
	}
	event, e.buf[e.head] = e.buf[e.head], Event{}
	if e.head++; e.head == len(e.buf) {
		e.buf, e.head = e.buf[:0], 0
	} else {
		e.signal() // another loop may wait
	}
	return event, true, false
}

// signal wakes a loop that waits. The mutex is held.
func (e *Events) signal() {
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

// listeners receive events. Each counts as one watched key, so that one load of a counter tells a write that there are
// none.
type listeners struct {
	classes     atomic.Uint32 // that any listener wants
	wantChanges atomic.Bool   // a listener wants changes
	list        atomic.Pointer[[]*listener]

	mu sync.Mutex // guards changes of the three above
}

type listener struct {
	classes EventClass
	hear    func(Event)                  // nil: it wants changes
	changes func([]calls.Change, uint64) // nil: it wants events
	shut    func()                       // called when the store closes
	foreign bool                         // hear is a user's function
}

func (c *core) listen(l *listener) *listener {
	c.listeners.change(c, func(list []*listener) []*listener { return append(list, l) })
	return l
}

func (c *core) unlisten(l *listener) {
	c.listeners.change(c, func(list []*listener) []*listener {
		return slices.DeleteFunc(list, func(other *listener) bool { return other == l })
	})
}

// change installs another list, and what follows from it.
func (o *listeners) change(c *core, edit func([]*listener) []*listener) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.all()
	after := edit(slices.Clone(before))
	var classes EventClass
	wantChanges := false
	for _, l := range after {
		classes |= l.classes
		wantChanges = wantChanges || l.changes != nil
	}
	o.list.Store(&after)
	o.classes.Store(uint32(classes))
	o.wantChanges.Store(wantChanges)
	c.watchers.active.Add(int64(len(after) - len(before)))
}

func (o *listeners) all() []*listener {
	if list := o.list.Load(); list != nil {
		return *list
	}
	return nil
}

// want reports whether there is a listener for events of a class.
func (o *listeners) want(class EventClass) bool { return EventClass(o.classes.Load())&class != 0 }

// notifyListeners passes changes and events on to their listeners, and calls the hooks in their places among the
// events. The changes come first: whoever hears of an event no longer trusts what he has cached. The keys of all are
// locked.
func (c *core) notifyListeners(ticket Ticket, events []Event, changes []calls.Change, hooks ...hook) {
	if len(events) == 0 && len(changes) == 0 && len(hooks) == 0 {
		return
	}
	list := c.listeners.all()
	tell := func() {
		if len(hooks) == 0 && (len(events) == 0 || len(changes) == 0) {
			each(list, func(l *listener) { l.notify(ticket, events, changes) })
			return
		}
		parts := make([]func(), 0, 2*len(hooks)+2)
		if len(changes) > 0 {
			parts = append(parts, func() { each(list, func(l *listener) { l.notify(ticket, nil, changes) }) })
		}
		told := 0
		for _, h := range hooks {
			if some := events[told:h.after]; len(some) > 0 {
				parts = append(parts, func() { each(list, func(l *listener) { l.notify(ticket, some, nil) }) })
			}
			parts = append(parts, func() { h.call(ticket) })
			told = h.after
		}
		parts = append(parts, func() { each(list, func(l *listener) { l.notify(ticket, events[told:], nil) }) })
		each(parts, func(part func()) { part() })
	}
	if len(hooks) > 0 || slices.ContainsFunc(list, func(l *listener) bool { return l.foreign }) {
		c.guard.run(tell)
	} else {
		tell()
	}
}

func (l *listener) notify(ticket Ticket, events []Event, changes []calls.Change) {
	if l.changes != nil {
		if len(changes) > 0 {
			l.changes(changes, uint64(ticket))
		}
		return
	}
	each(events, func(event Event) {
		if l.classes&event.Kind.Class() != 0 {
			event.Ticket = ticket
			l.hear(event)
		}
	})
}

// each calls fn, which is a user's or calls one, with every element: if it panics, or ends its goroutine, that
// continues after fn has been called with the others.
func each[T any](list []T, fn func(T)) {
	done := 0
	defer func() {
		if done < len(list) {
			each(list[done+1:], fn)
		}
	}()
	for _, elem := range list {
		fn(elem)
		done++
	}
}

// notifyNamespaces reports an operation on whole namespaces, unless it failed. Everything is locked.
func (c *core) notifyNamespaces(e EventKind, ticket uint64, err error, namespaces ...int) {
	if err != nil {
		return
	}
	events := make([]Event, len(namespaces))
	changes := make([]calls.Change, len(namespaces))
	for i, ns := range namespaces {
		events[i] = Event{Namespace: ns, Kind: e}
		changes[i] = calls.Change{Namespace: ns, Whole: true}
	}
	c.notifyListeners(Ticket(ticket), events, changes)
}
