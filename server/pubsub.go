package server

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/structures"
)

// Channels live in memory only: a message reaches those who are subscribed at that moment, and no
// one later. Shard channels are a second set of names, kept apart as in a cluster of one node.
//
// The lock order is: stripes of keys, then hub.mu, then the mutex of one mailbox. A notification
// publishes with keys locked, so nothing here may wait for a client, for the disk or for a key.

// audience is what a session can subscribe to.
type audience int

const (
	toChannel audience = iota
	toPattern
	toShard
	toCommands // MONITOR: executed commands
	audiences
)

// hub knows the subscriptions of each session. Messages pass through it one after the other, so
// that all receivers of two of them get them in the same order.
//
// Delivery is in two steps. publish puts a message into the mailboxes of the sessions, with the
// mutex held and without waiting; each session moves its mail into its output between two commands,
// and waits for the commits that it reports as for its own.
type hub struct {
	subscriptions atomic.Int64 // subscriptions: while there are none, publishing costs one load of it
	monitors      atomic.Int64 // of toCommands
	patternBytes  atomic.Int64 // of the names of toPattern, counted for each subscription

	mu           sync.Mutex // guards the rest
	subs         [audiences]map[string]map[*Session]struct{}
	patternNames []string // of subs[toPattern]; nil when these have changed. A slice that was handed out does not change
}

// subscribe subscribes a session to a channel, or of those that match a pattern, and says whether
// it did not before. The session's own map is written without the mutex: only its goroutine uses
// it. The hub's is what publishers read.
func (h *hub) subscribe(s *Session, to audience, name string) bool {
	if _, already := s.subscribed[to][name]; already {
		return false
	}
	if s.subscribed[to] == nil {
		s.subscribed[to] = make(map[string]struct{})
	}
	s.subscribed[to][name] = struct{}{}
	s.client.subscribed[to].Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs[to] == nil {
		h.subs[to] = make(map[string]map[*Session]struct{})
	}
	if h.subs[to][name] == nil {
		h.subs[to][name] = make(map[*Session]struct{})
	}
	h.subs[to][name][s] = struct{}{}
	h.subscriptions.Add(1)
	h.changedLocked(to, name, 1)
	return true
}

// changedLocked keeps what the hub knows of some kinds apart, after so many subscriptions to a name were added.
func (h *hub) changedLocked(to audience, name string, delta int64) {
	switch to {
	case toCommands:
		h.monitors.Add(delta)
	case toPattern:
		h.patternBytes.Add(delta * int64(len(name)+1))
		h.patternNames = nil
	}
}

// unsubscribe is its inverse. A name without subscribers is removed, so that names do not pile up.
func (h *hub) unsubscribe(s *Session, to audience, name string) {
	if _, is := s.subscribed[to][name]; !is {
		return
	}
	delete(s.subscribed[to], name)
	s.client.subscribed[to].Add(-1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.subs[to][name], s); len(h.subs[to][name]) == 0 {
		delete(h.subs[to], name)
	}
	h.subscriptions.Add(-1)
	h.changedLocked(to, name, -1)
}

// unsubscribeAll takes all subscriptions of a session away.
func (h *hub) unsubscribeAll(s *Session) {
	for to := range audiences {
		for name := range s.subscribed[to] {
			h.unsubscribe(s, to, name)
		}
	}
}

// publish posts a message to its receivers, and returns their number; one that gets it as a
// channel's and as a pattern's counts twice. It never waits for a client. It matches patterns one
// by one, O(patterns) for each message, as in Redis, but without the mutex: a message that takes
// long to match delays no other, and no subscriber. Who subscribes meanwhile does not get it.
func (h *hub) publish(m message) (receivers int) {
	if h.subscriptions.Load() == 0 {
		return 0
	}
	var matched []string
	if m.to == toChannel && h.patternBytes.Load() > 0 {
		matched = h.matching(m.channel)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs[m.to][m.channel] {
		s.mail.post(s, m)
		receivers++
	}
	for _, pattern := range matched {
		m := m
		m.to, m.pattern = toPattern, pattern
		for s := range h.subs[toPattern][pattern] {
			s.mail.post(s, m)
			receivers++
		}
	}
	return receivers
}

// matching returns the patterns that match a channel.
func (h *hub) matching(channel string) (matched []string) {
	h.mu.Lock()
	if h.patternNames == nil {
		h.patternNames = slices.Collect(maps.Keys(h.subs[toPattern]))
	}
	patterns := h.patternNames
	h.mu.Unlock()
	name := []byte(channel)
	for _, pattern := range patterns {
		if structures.Match(pattern, name) {
			matched = append(matched, pattern)
		}
	}
	return matched
}

// names returns the channels, shard channels or patterns with subscribers, sorted. Counts of zero
// are not kept, so every name has a listener.
func (h *hub) names(to audience) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.subs[to]))
}

// subscribers returns how many listen to each of some channels.
func (h *hub) subscribers(to audience, names []string) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := make([]int, len(names))
	for i, name := range names {
		counts[i] = len(h.subs[to][name])
	}
	return counts
}

// hasSubscriptions says whether the session has subscribed to anything.
func (s *Session) hasSubscriptions() bool {
	return len(s.subscribed[toChannel])+len(s.subscribed[toPattern])+len(s.subscribed[toShard]) > 0
}

// inSubscribedMode reports whether the session is limited to subscriptions: in RESP2 a reply could
// not be distinguished from a message.
func (s *Session) inSubscribedMode() bool { return s.out.Version() == 2 && s.hasSubscriptions() }

// errSubscribedMode refuses a command of a session that has subscribed.
func errSubscribedMode(name string) command.Error {
	return command.Errorf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", name)
}
