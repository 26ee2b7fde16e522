package pubsub

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
)

// Subscriber is one that subscribes and gets messages. Its zero value has subscribed to nothing. It must not be copied.
//
// Messages wait in its mailbox without bound in number, and with one in bytes. waiting is read without the mutex,
// before every command: it is set after a message is in the box, and cleared by the one who empties the box, under the
// mutex, so no message is left over unnoticed.
type Subscriber struct {
	Wake    func() // is called when mail has come; nil: nobody waits for that. Keys may be locked, so it must not wait for anything
	Flooded func() // is called once, as Wake is, when more than the limits waits; what has waited is gone
	// Kept is called, as Wake is, with how many bytes more wait for one who does not take them: see uncounted. nil: nobody counts.
	Kept func(bytes int)

	names  [kinds]map[string]struct{} // read by its own goroutine without a mutex; written with Hub.mu held, and so read by others
	counts [kinds]atomic.Int64        // of names
	bytes  int                        // of memory that names take, about

	waiting atomic.Bool // there is mail, or there was too much

	mu       sync.Mutex // guards the rest
	messages []Message
	mail     int       // bytes of messages
	above    time.Time // since when there has been more than the soft limit
	soft     int       // the soft limit, as it was at the last message
	overflow bool      // for good; also after Close
}

// uncounted is how many bytes of mail Kept is not told of: who takes mail at once counts what it holds then. Many
// subscribers may get a long message at a time, and its text is there once.
const uncounted = 256 << 10

// Limits bound what waits in a mailbox: Hard bytes, or Soft bytes for more than Seconds; 0 bytes is no limit. They may
// change at any time.
type Limits struct{ Hard, Soft, Seconds atomic.Int64 }

// Init sets Redis's defaults.
func (l *Limits) Init() {
	l.Hard.Store(32 << 20)
	l.Soft.Store(8 << 20)
	l.Seconds.Store(60)
}

// subscriptionOverhead is what a subscription takes in memory besides its name, about: two maps, and what growing them
// leaves unused.
const subscriptionOverhead = 250

// Message is something published, on its way to a subscriber.
type Message struct {
	Kind    Kind
	Pattern string // that the channel matches, if Kind is Pattern
	Channel string
	Payload string
	Keys    []string  // of an invalidation; nil: all
	Ticket  db.Ticket // of the newest commit that it may report
}

// What a message takes in memory besides its text, and a key in it.
const (
	messageOverhead = 88
	keyOverhead     = 32
)

// size is the memory that a message takes while it waits.
func (m *Message) size() int {
	n := len(m.Channel) + len(m.Payload) + messageOverhead
	for _, key := range m.Keys {
		n += len(key) + keyOverhead
	}
	return n
}

// Write writes a message that was published: a push in RESP3, an array of the same form in RESP2. An executed command
// is a line.
func (m *Message) Write(out *resp.Writer) {
	switch m.Kind {
	case Commands:
		out.Simple(m.Payload)
		return
	case Pattern:
		out.Push(4)
		out.BulkString("pmessage")
		out.BulkString(m.Pattern)
	case Shard:
		out.Push(3)
		out.BulkString("smessage")
	default:
		out.Push(3)
		out.BulkString("message")
	}
	out.BulkString(m.Channel)
	out.BulkString(m.Payload)
}

// Names returns what it has subscribed to, sorted.
func (s *Subscriber) Names(kind Kind) []string { return slices.Sorted(maps.Keys(s.names[kind])) }

// Count is the number of its subscriptions of a kind. Any goroutine may ask.
func (s *Subscriber) Count(kind Kind) int64 { return s.counts[kind].Load() }

// Listens reports whether it has subscribed to a channel, a pattern or a shard channel. Any goroutine may ask.
func (s *Subscriber) Listens() bool {
	return s.Count(Channel) > 0 || s.Count(Pattern) > 0 || s.Count(Shard) > 0
}

// Post puts a message into the mailbox, unless there has been too much in it.
func (s *Subscriber) Post(limits *Limits, m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overflow {
		return
	}
	s.messages = append(s.messages, m)
	s.mail += m.size()
	if s.mail > uncounted && s.Kept != nil {
		s.Kept(min(m.size(), s.mail-uncounted))
	}
	if s.soft = int(limits.Soft.Load()); s.soft == 0 {
		s.soft = math.MaxInt
	}
	switch {
	case s.mail <= s.soft:
		s.above = time.Time{}
	case s.above.IsZero():
		s.above = time.Now()
	}
	hard, period := limits.Hard.Load(), time.Duration(limits.Seconds.Load())*time.Second
	if hard > 0 && int64(s.mail) > hard || !s.above.IsZero() && time.Since(s.above) > period {
		s.messages, s.mail, s.overflow = nil, 0, true
		if s.Flooded != nil {
			s.Flooded()
		}
	}
	if !s.waiting.Swap(true) && s.Wake != nil {
		s.Wake()
	}
}

// Close drops what waits, and what comes from now on: Kept is not called any more.
func (s *Subscriber) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages, s.mail, s.overflow = nil, 0, true
}

// HasMail reports whether Take has something to say.
func (s *Subscriber) HasMail() bool { return s.waiting.Load() }

// mailBatch is how many messages are taken out of a mailbox at a time.
const mailBatch = 64

// Take returns some messages, or that there have been too many. They are cleared in the box, so that it does not keep
// their texts alive.
func (s *Subscriber) Take() (taken []Message, overflow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.messages), mailBatch)
	taken = slices.Clone(s.messages[:n])
	for i := range taken {
		s.mail -= taken[i].size()
	}
	clear(s.messages[:n])
	if s.messages = s.messages[n:]; len(s.messages) == 0 {
		s.messages = nil
		s.waiting.Store(false)
	}
	if s.mail <= s.soft {
		s.above = time.Time{}
	}
	return taken, s.overflow
}

// Waiting is how many messages wait, and their memory in bytes. Any goroutine may ask.
func (s *Subscriber) Waiting() (messages, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.messages), s.mail
}

// Held is the memory of subscriptions and mail in bytes, about.
func (s *Subscriber) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes + s.mail
}
