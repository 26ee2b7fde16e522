package server

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/server/internal/tracking"
)

// clientSet are the clients that are connected. Its zero value is empty.
type clientSet struct {
	lastID atomic.Int64

	mu   sync.Mutex // guards byID
	byID map[int64]*client
}

// newID is that of another client: ascending, and never used again.
func (l *clientSet) newID() int64 { return l.lastID.Add(1) }

// add makes a client visible to CLIENT LIST and CLIENT KILL.
func (l *clientSet) add(c *client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = make(map[int64]*client)
	}
	l.byID[c.id()] = c
}

// remove is its inverse. It may be called twice. Somebody who has copied the list before still has the client, which must
// bear to be asked, woken and killed after its end.
func (l *clientSet) remove(c *client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, c.id())
}

// get returns the connected client of that id, nil if there is none or it was killed.
func (l *clientSet) get(id int64) *client {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.byID[id]; c != nil && !c.killed.Load() {
		return c
	}
	return nil
}

// tracking is the side of a client that tracks keys, nil if it has gone. Package tracking calls it for the target of a
// redirection, with the keys of a commit locked: so nothing may lock keys while it holds l.mu.
func (l *clientSet) tracking(id int64) *tracking.Client {
	if c := l.get(id); c != nil {
		return &c.tracking
	}
	return nil
}

// all returns the connected clients by ascending id, with those that were killed and have not ended yet: listed leaves
// them out. It is a copy: clients go on, and some may end before the caller has read the list. Sorting takes O(n log n)
// with l.mu held, which only connections that come and go wait for.
func (l *clientSet) all() []*client {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*client, 0, len(l.byID))
	for _, c := range l.byID {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *client) int { return int(a.id() - b.id()) })
	return list
}

// listed returns the clients that others are told of: without those that were killed, as in Redis.
func (l *clientSet) listed() []*client {
	return slices.DeleteFunc(l.all(), func(c *client) bool { return c.killed.Load() })
}
