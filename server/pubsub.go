package server

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/structures"
)

// audience is what a session can subscribe to.
type audience int

const (
	toChannel audience = iota
	toPattern
	toShard
	toCommands // MONITOR: what is executed
	audiences
)

// hub is who listens to what. Messages pass through it one after the other, so that all who hear two of them hear them in
// the same order.
type hub struct {
	subscriptions atomic.Int64 // subscriptions: while there are none, publishing costs one look at it
	monitors      atomic.Int64 // of toCommands

	mu   sync.Mutex // guards subs
	subs [audiences]map[string]map[*Session]struct{}
}

// message is something published, on its way to a session.
type message struct {
	to      audience
	pattern string // that the channel matches, if to is toPattern
	channel string
	payload string
	ticket  db.Ticket // of the newest commit that it may tell of
}

// messageOverhead is what a message takes in memory beside its text.
const messageOverhead = 64

func (m *message) size() int { return len(m.channel) + len(m.payload) + messageOverhead }

// subscribe makes a session hear of a channel, or of those that match a pattern, and says whether it did not before.
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
	if to == toCommands {
		h.monitors.Add(1)
	}
	return true
}

// unsubscribe is its inverse.
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
	if to == toCommands {
		h.monitors.Add(-1)
	}
}

// unsubscribeAll takes all subscriptions of a session away.
func (h *hub) unsubscribeAll(s *Session) {
	for to := range audiences {
		for name := range s.subscribed[to] {
			h.unsubscribe(s, to, name)
		}
	}
}

// publish gives a message to those who listen, and returns how many did; one who hears it as a channel's and as a pattern's
// counts twice. It never waits for a client.
func (h *hub) publish(m message) (receivers int) {
	if h.subscriptions.Load() == 0 {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs[m.to][m.channel] {
		s.mail.post(s, m)
		receivers++
	}
	if m.to != toChannel {
		return receivers
	}
	for pattern, listeners := range h.subs[toPattern] {
		if !structures.Match(pattern, []byte(m.channel)) {
			continue
		}
		m := m
		m.to, m.pattern = toPattern, pattern
		for s := range listeners {
			s.mail.post(s, m)
			receivers++
		}
	}
	return receivers
}

// names returns the channels, shard channels or patterns that somebody listens to, sorted.
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

// Bounds of what may wait for one subscriber, as Redis has them by default: who exceeds the first, or the second for so long, is
// disconnected, for nobody else can wait for it.
const (
	maxMailBytes   = 32 << 20
	softMailBytes  = 8 << 20
	softMailPeriod = 60 * time.Second
)

// mailbox is what has been published for a session and not been put into its output yet. Any goroutine may post.
type mailbox struct {
	waiting atomic.Bool // there is some, or there was too much

	mu       sync.Mutex // guards the rest
	messages []message
	bytes    int
	above    time.Time // since when there have been more than softMaxMail
	overflow bool      // for good
}

// post puts a message into the box of a session, or breaks the session off that does not empty it.
func (b *mailbox) post(s *Session, m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.overflow {
		return
	}
	b.messages = append(b.messages, m)
	b.bytes += m.size()
	switch {
	case b.bytes <= softMailBytes:
		b.above = time.Time{}
	case b.above.IsZero():
		b.above = time.Now()
	}
	if b.bytes > maxMailBytes || !b.above.IsZero() && time.Since(b.above) > softMailPeriod {
		b.messages, b.bytes, b.overflow = nil, 0, true
		s.server.counters.flooded.Add(1)
		s.server.options.Logger.Warn("a subscriber does not take its messages; connection closed", "client", s.id)
		if s.client.abort != nil {
			s.client.abort()
		}
	}
	if !b.waiting.Swap(true) && s.client.wake != nil {
		s.client.wake()
	}
}

// mailBatch is how many messages are taken out of a mailbox at a time.
const mailBatch = 64

// take moves some messages to dst.
func (b *mailbox) take(dst []message) (taken []message, overflow bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.messages), mailBatch)
	dst = append(dst, b.messages[:n]...)
	for i := range dst {
		b.bytes -= dst[i].size()
	}
	clear(b.messages[:n])
	if b.messages = b.messages[n:]; len(b.messages) == 0 {
		b.messages = nil
		b.waiting.Store(false)
	}
	if b.bytes <= softMailBytes {
		b.above = time.Time{}
	}
	return dst, b.overflow
}

// held is the memory of what waits, in bytes.
func (b *mailbox) held() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// deliverMessages puts what has been published into the output, as far as there is room. It is called between commands only.
func (s *Session) deliverMessages() {
	for s.mail.waiting.Load() && !s.closed && !s.Paused() {
		from := s.out.Len()
		messages, overflow := s.mail.take(nil)
		if overflow {
			s.closed = true
			return
		}
		var ticket db.Ticket
		for i := range messages {
			s.deliverMessage(&messages[i])
			ticket = max(ticket, messages[i].ticket)
		}
		if ticket > 0 {
			s.holdReplies(ticket, from)
		}
	}
}

func (s *Session) deliverMessage(m *message) {
	switch m.to {
	case toCommands:
		s.out.Simple(m.payload)
		return
	case toPattern:
		s.out.Push(4)
		s.out.BulkString("pmessage")
		s.out.BulkString(m.pattern)
	case toShard:
		s.out.Push(3)
		s.out.BulkString("smessage")
	default:
		s.out.Push(3)
		s.out.BulkString("message")
	}
	s.out.BulkString(m.channel)
	s.out.BulkString(m.payload)
}

// hasSubscriptions says whether the session has subscribed to anything.
func (s *Session) hasSubscriptions() bool {
	return len(s.subscribed[toChannel])+len(s.subscribed[toPattern])+len(s.subscribed[toShard]) > 0
}

// inSubscribedMode says whether the session may do no more than that: in RESP2 a reply could not be told from a message.
func (s *Session) inSubscribedMode() bool { return s.out.Version() == 2 && s.hasSubscriptions() }

// errSubscribedMode refuses a command of a session that has subscribed.
func errSubscribedMode(name string) command.Error {
	return command.Errorf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", name)
}
