package pubsub

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/structures"
)

// Kind is what a subscriber can subscribe to, or why it gets a message.
type Kind int

// What can be subscribed to.
const (
	Channel  Kind = iota
	Pattern       // the channels that match it
	Shard         // a shard channel
	Commands      // MONITOR: executed commands; the only name is ""
	kinds
)

// Messages that nobody subscribes to, about keys that a client may have cached: see package tracking.
const (
	ToReader     = kinds + 1 + iota // for the one that has read them
	ToRedirected                    // for another, instead of the one that has read them
	ToOrphan                        // there is no other any more
)

// Hub knows the subscriptions. Its zero value has none, and no limits of mailboxes.
type Hub struct {
	Limits Limits // of each mailbox

	subscriptions atomic.Int64 // while there are none, publishing costs one load of it
	monitors      atomic.Int64 // of Commands
	patternBytes  atomic.Int64 // of the names of Pattern, counted for each subscription

	mu           sync.Mutex // guards the rest, and writes to Subscriber.names
	subs         [kinds]map[string]map[*Subscriber]struct{}
	patternNames []string // of subs[Pattern]; nil when these have changed. A slice that was handed out does not change
}

// Subscribe subscribes s to a name. Once is as good as twice.
func (h *Hub) Subscribe(s *Subscriber, kind Kind, name string) {
	if _, already := s.names[kind][name]; already {
		return
	}
	s.counts[kind].Add(1)
	s.bytes += len(name) + subscriptionOverhead
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.names[kind] == nil {
		s.names[kind] = make(map[string]struct{})
	}
	s.names[kind][name] = struct{}{}
	if h.subs[kind] == nil {
		h.subs[kind] = make(map[string]map[*Subscriber]struct{})
	}
	if h.subs[kind][name] == nil {
		h.subs[kind][name] = make(map[*Subscriber]struct{})
	}
	h.subs[kind][name][s] = struct{}{}
	h.changedLocked(kind, name, 1)
}

// Unsubscribe is its inverse. A name without subscribers is removed, so that names do not pile up.
func (h *Hub) Unsubscribe(s *Subscriber, kind Kind, name string) {
	if _, is := s.names[kind][name]; !is {
		return
	}
	s.counts[kind].Add(-1)
	s.bytes -= len(name) + subscriptionOverhead
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(s.names[kind], name); len(s.names[kind]) == 0 {
		s.names[kind] = nil // a map does not shrink
	}
	if delete(h.subs[kind][name], s); len(h.subs[kind][name]) == 0 {
		delete(h.subs[kind], name)
	}
	if len(h.subs[kind]) == 0 {
		h.subs[kind] = nil
	}
	h.changedLocked(kind, name, -1)
}

// UnsubscribeAll ends all subscriptions of s.
func (h *Hub) UnsubscribeAll(s *Subscriber) {
	for kind := range kinds {
		for name := range s.names[kind] {
			h.Unsubscribe(s, kind, name)
		}
	}
}

// changedLocked keeps what the hub can say without its mutex, after so many subscriptions to a name were added.
func (h *Hub) changedLocked(kind Kind, name string, delta int64) {
	h.subscriptions.Add(delta)
	switch kind {
	case Commands:
		h.monitors.Add(delta)
	case Pattern:
		h.patternBytes.Add(delta * int64(len(name)+1))
		h.patternNames = nil
	}
}

// Publish posts a message to its receivers, and returns their number; one that gets it as a channel's and as a
// pattern's counts twice. It never waits for a client. It matches patterns one by one, O(patterns) for each message, as
// in Redis, but without the mutex: a message that takes long to match delays no other, and no subscriber. Who
// subscribes meanwhile does not get it. When stop ends the matching, nobody but the channel's own subscribers and some
// of the others get it; nil: it has no end.
func (h *Hub) Publish(m Message, stop func(int) bool) (receivers int) {
	if h.subscriptions.Load() == 0 {
		return 0
	}
	matched := h.matching(&m, stop)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.eachLocked(m, matched, func(s *Subscriber, m Message) {
		s.Post(&h.Limits, m)
		receivers++
	})
	return receivers
}

// Prepared is a message whose receivers have been counted, and that Post may post.
type Prepared struct {
	message  Message
	patterns []string // that match its channel
	own      *Subscriber
	toOwn    []Message // what own gets
	also     func()    // what else is to be done; nil for nothing
	alsoSize int
}

// Also lets Post call fn, which must be quick, and takes so many bytes until then.
func (p *Prepared) Also(size int, fn func()) { p.also, p.alsoSize = fn, size }

// Size is the memory that it takes in bytes, about.
func (p *Prepared) Size() int {
	n := p.message.size() + p.alsoSize
	for _, pattern := range p.patterns {
		n += len(pattern) + keyOverhead
	}
	return n
}

// Prepare is the first half of Publish for a message that is posted later, if at all: it matches, and counts the
// receivers. own is the publisher's own subscriber, which gets the message if it listens now, whatever it has left or
// joined meanwhile.
func (h *Hub) Prepare(m Message, own *Subscriber, stop func(int) bool) (p Prepared, receivers int) {
	if h.subscriptions.Load() == 0 {
		return p, 0
	}
	p = Prepared{message: m, patterns: h.matching(&m, stop), own: own}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.eachLocked(m, p.patterns, func(s *Subscriber, m Message) {
		if s == own {
			p.toOwn = append(p.toOwn, m)
		}
		receivers++
	})
	return p, receivers
}

// Post posts a message to those who listen now, with the ticket of the newest commit that it may report.
func (h *Hub) Post(p *Prepared, ticket db.Ticket) {
	if p.also != nil {
		p.also()
	}
	p.message.Ticket = max(p.message.Ticket, ticket)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range p.toOwn {
		m.Ticket = p.message.Ticket
		p.own.Post(&h.Limits, m)
	}
	h.eachLocked(p.message, p.patterns, func(s *Subscriber, m Message) {
		if s != p.own {
			s.Post(&h.Limits, m)
		}
	})
}

// eachLocked calls fn for each receiver of a message whose channel matches the patterns, with the message as that gets
// it.
func (h *Hub) eachLocked(m Message, patterns []string, fn func(*Subscriber, Message)) {
	for s := range h.subs[m.Kind][m.Channel] {
		fn(s, m)
	}
	for _, pattern := range patterns {
		m := m
		m.Kind, m.Pattern = Pattern, pattern
		for s := range h.subs[Pattern][pattern] {
			fn(s, m)
		}
	}
}

// matching returns the patterns that match the channel of a message, or some of them if stop ends it
// (structures.MatchUntil).
func (h *Hub) matching(m *Message, stop func(int) bool) (matched []string) {
	if m.Kind != Channel || h.patternBytes.Load() == 0 {
		return nil
	}
	h.mu.Lock()
	if h.patternNames == nil {
		h.patternNames = slices.Collect(maps.Keys(h.subs[Pattern]))
	}
	patterns := h.patternNames
	h.mu.Unlock()
	name := []byte(m.Channel)
	for i, pattern := range patterns {
		if structures.MatchUntil(pattern, name, stop) {
			matched = append(matched, pattern)
		}
		if stop != nil && i%1024 == 1023 && stop(0) {
			break
		}
	}
	return matched
}

// maxMatching bounds quick matching of channels with patterns: the product of their lengths.
const maxMatching = 1 << 20

// MatchesQuickly reports whether names of so many bytes together are soon matched with all patterns.
func (h *Hub) MatchesQuickly(size int) bool { return h.patternBytes.Load()*int64(size) <= maxMatching }

// Silent reports whether nobody listens to anything.
func (h *Hub) Silent() bool { return h.subscriptions.Load() == 0 }

// Monitored reports whether somebody listens to Commands.
func (h *Hub) Monitored() bool { return h.monitors.Load() > 0 }

// Names returns the names of a kind that have subscribers, sorted.
func (h *Hub) Names(kind Kind) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.subs[kind]))
}

// Count returns how many names of a kind have subscribers.
func (h *Hub) Count(kind Kind) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs[kind])
}

// Counts returns how many have subscribed to each of some names.
func (h *Hub) Counts(kind Kind, names []string) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := make([]int, len(names))
	for i, name := range names {
		counts[i] = len(h.subs[kind][name])
	}
	return counts
}

// NamesOf returns what another goroutine's subscriber has subscribed to, sorted.
func (h *Hub) NamesOf(s *Subscriber, kind Kind) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(s.names[kind]))
}
