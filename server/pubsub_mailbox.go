package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
)

// A mailbox stands between a publisher, who must not wait, and a session, which may be in the
// middle of a command or blocked by a slow client. Messages wait in it without bound in number, and
// with one in bytes: a subscriber that does not keep up is disconnected rather than served with
// gaps.
//
// waiting is read without the mutex, before every command: it is set after a message is in the box,
// and cleared by the one who empties the box, under the mutex, so no message is left over
// unnoticed.

// Bounds of what may wait for one subscriber, with Redis's defaults: a subscriber that exceeds the
// first, or the second for so long, is disconnected, for no publisher can wait for it.
const (
	maxMailBytes   = 32 << 20
	softMailBytes  = 8 << 20
	softMailPeriod = 60 * time.Second
)

// message is something published, on its way to a session.
type message struct {
	to      audience
	pattern string // that the channel matches, if to is toPattern
	channel string
	payload string
	ticket  db.Ticket // of the newest commit that it may report
}

// messageOverhead is what a message takes in memory besides its text.
const messageOverhead = 64

// size is the memory that a message takes while it waits.
func (m *message) size() int { return len(m.channel) + len(m.payload) + messageOverhead }

// mailbox holds messages published for a session and not yet in its output. Any goroutine may post.
type mailbox struct {
	waiting atomic.Bool // there is some, or there was too much

	mu       sync.Mutex // guards the rest
	messages []message
	bytes    int
	above    time.Time // since when there have been more than softMaxMail
	overflow bool      // for good
}

// post puts a message into the box of a session, or breaks the session off that does not empty it.
// Keys may be locked here, so abort and wake must not wait for anything.
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

// take moves some messages to dst. dst is empty. The messages are cleared in the box, so that it
// does not keep their texts alive.
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

// deliverMessages moves messages into the output, as far as there is room. It is called between
// commands only. The messages of one batch are held for the newest commit among them: none
// overtakes the write that it reports, and a sync serves all.
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

// deliverMessage writes one message: a push in RESP3, an array of the same form in RESP2.
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
