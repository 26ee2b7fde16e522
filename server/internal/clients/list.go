package clients

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/server/internal/tracking"
)

// List are the clients that are connected. Its zero value is empty.
type List struct {
	lastID atomic.Int64

	mu   sync.Mutex // guards byID
	byID map[int64]*Client
}

// NewID is that of another client: ascending, and never used again.
func (l *List) NewID() int64 { return l.lastID.Add(1) }

// Add makes a client visible to CLIENT LIST and CLIENT KILL.
func (l *List) Add(c *Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = make(map[int64]*Client)
	}
	l.byID[c.ID()] = c
}

// Remove is its inverse. It may be called twice. Somebody who has copied the list before still has the client, which must
// bear to be asked, woken and killed after its end.
func (l *List) Remove(c *Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, c.ID())
}

// Get returns the connected client of that id, nil if there is none or it was killed.
func (l *List) Get(id int64) *Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.byID[id]; c != nil && !c.Killed.Load() {
		return c
	}
	return nil
}

// Tracking is the side of a client that tracks keys, nil if it has gone. Package tracking calls it for the target of a
// redirection, with the keys of a commit locked: so nothing may lock keys while it holds l.mu.
func (l *List) Tracking(id int64) *tracking.Client {
	if c := l.Get(id); c != nil {
		return &c.Tracking
	}
	return nil
}

// All returns the connected clients by ascending id, with those that were killed and have not ended yet: listed leaves
// them out. It is a copy: clients go on, and some may end before the caller has read the list. Sorting takes O(n log n)
// with l.mu held, which only connections that come and go wait for.
func (l *List) All() []*Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*Client, 0, len(l.byID))
	for _, c := range l.byID {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *Client) int { return int(a.ID() - b.ID()) })
	return list
}

// Listed returns the clients that others are told of: without those that were killed, as in Redis.
func (l *List) Listed() []*Client {
	return slices.DeleteFunc(l.All(), func(c *Client) bool { return c.Killed.Load() })
}
