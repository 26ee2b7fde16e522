package session

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
)

// The handlers of SUBSCRIBE and PUBLISH; package pubsub has the hub and the way
// of a message. In RESP2 a session that has subscribed may send only these commands, because replies and
// messages look alike; in RESP3 messages are pushes, and everything is allowed.

const subscribing = command.PubSub | command.OfSession

// pubSubCommands subscribe and publish. Subscribing replies with pushes in RESP3, one for each
// channel, not with a reply.
var pubSubCommands = command.InGroup(command.GroupPubSub, []*command.Command{
	{Name: "subscribe", Arity: -2, Flags: subscribing | command.WhileSubscribed, Listens: command.ToAllChannels,
		Run: onSession(subscribe(pubsub.Channel))},
	{Name: "psubscribe", Arity: -2, Flags: subscribing | command.WhileSubscribed, Listens: command.ToAllPatterns,
		Run: onSession(subscribe(pubsub.Pattern))},
	{Name: "ssubscribe", Arity: -2, Flags: subscribing | command.WhileSubscribed, Listens: command.ToAllChannels,
		Channels: command.ManyKeys("not_key"),
		Run:      onSession(subscribe(pubsub.Shard))},
	{Name: "unsubscribe", Arity: -1, Flags: subscribing | command.WhileSubscribed,
		Run: onSession(unsubscribe(pubsub.Channel))},
	{Name: "punsubscribe", Arity: -1, Flags: subscribing | command.WhileSubscribed,
		Run: onSession(unsubscribe(pubsub.Pattern))},
	{Name: "sunsubscribe", Arity: -1, Flags: subscribing | command.WhileSubscribed, Channels: command.ManyKeys("not_key"),
		Run: onSession(unsubscribe(pubsub.Shard))},
	{Name: "publish", Arity: 3, Flags: command.PubSub | command.AnyState | command.Fast, Listens: command.ToOneChannel,
		Run: onSession(publish(pubsub.Channel))},
	{Name: "spublish", Arity: 3, Flags: command.PubSub | command.AnyState | command.Fast, Listens: command.ToOneChannel,
		Channels: command.OneKey("not_key"), Run: onSession(publish(pubsub.Shard))},
})

// subscribeVerbs name the replies of subscribing and leaving.
var subscribeVerbs = map[pubsub.Kind][2]string{
	pubsub.Channel: {"subscribe", "unsubscribe"}, pubsub.Pattern: {"psubscribe", "punsubscribe"}, pubsub.Shard: {"ssubscribe", "sunsubscribe"},
}

// subscribe replies once for each channel, also for one that it has subscribed to before. A message that is published
// from now on comes after the reply, because messages are delivered between commands only. SSUBSCRIBE is refused within
// EXEC, as in Redis; SUBSCRIBE is not.
func subscribe(to pubsub.Kind) func(*Session, *command.Call) error {
	return func(s *Session, c *command.Call) error {
		if c.Queued && to == pubsub.Shard {
			return command.Errorf("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
		}
		if err := s.room.askBefore(c, confirmations(c.Args[1:])); err != nil {
			return err
		}
		for i, name := range c.Args.Strings(1) {
			if err := c.GoesOn(i); err != nil {
				return err
			}
			s.server.Hub.Subscribe(&s.mail.subscriber, to, name)
			confirm(c, &s.mail.subscriber, subscribeVerbs[to][0], to, name)
		}
		return nil
	}
}

// unsubscribe replies once for each channel, and once if there is none to leave. Names that were not subscribed to are
// confirmed as well, as in Redis. Messages that are in the mailbox by then are still delivered, after the replies.
func unsubscribe(to pubsub.Kind) func(*Session, *command.Call) error {
	return func(s *Session, c *command.Call) error {
		names := c.Args.Strings(1)
		if len(names) == 0 {
			names = s.mail.subscriber.Names(to)
		}
		if err := s.room.askBefore(c, confirmations(names)); err != nil {
			return err
		}
		for i, name := range names {
			if err := c.GoesOn(i); err != nil {
				return err
			}
			s.server.Hub.Unsubscribe(&s.mail.subscriber, to, name)
			confirm(c, &s.mail.subscriber, subscribeVerbs[to][1], to, name)
		}
		if len(names) == 0 {
			c.Out.Push(3)
			c.Out.BulkString(subscribeVerbs[to][1])
			c.Out.Null()
			c.Out.Int(subscriptionCount(&s.mail.subscriber, to))
		}
		return nil
	}
}

// confirmations is about how many bytes it takes to confirm subscriptions to names.
func confirmations[name string | []byte](names []name) (n int) {
	for _, name := range names {
		n += len(name) + len("*3\r\n$12\r\npunsubscribe\r\n$10\r\n\r\n:1000000\r\n")
	}
	return n
}

// confirm pushes that a subscription has begun or ended, and how many there are now.
func confirm(c *command.Call, sub *pubsub.Subscriber, verb string, to pubsub.Kind, name string) {
	c.Out.Push(3)
	c.Out.BulkString(verb)
	c.Out.BulkString(name)
	c.Out.Int(subscriptionCount(sub, to))
}

// subscriptionCount is the number in the replies to subscriptions: shard channels are counted
// separately.
func subscriptionCount(sub *pubsub.Subscriber, to pubsub.Kind) int64 {
	if to == pubsub.Shard {
		return sub.Count(pubsub.Shard)
	}
	return sub.Count(pubsub.Channel) + sub.Count(pubsub.Pattern)
}

// publish posts at once; within EXEC or a script with its commit, if there is one. A subscriber must not see a write
// that can be lost with what the same client wrote before, so the message has the ticket of that. Replicas get it at the
// same moment, whoever listens here.
func publish(to pubsub.Kind) func(*Session, *command.Call) error {
	return func(s *Session, c *command.Call) error {
		m := pubsub.Message{Kind: to, Channel: c.Key(1), Payload: c.Key(2), Ticket: s.unit.unsynced.Ticket}
		forReplicas := s.server.Replicas.Message(c.Args)
		if !c.Queued {
			s.server.Replicas.Publish(forReplicas)
			return c.Int(s.server.Hub.Publish(m, s.stopMatching), s.presence.gaveUp())
		}
		p, n := s.server.Hub.Prepare(m, &s.mail.subscriber, s.stopMatching)
		if n == 0 && forReplicas == nil || s.presence.gaveUp() != nil {
			return c.Int(n, s.presence.gaveUp())
		}
		if forReplicas != nil {
			p.Also(len(forReplicas), func() { s.server.Replicas.Publish(forReplicas) })
		}
		if !s.mail.unsent.TakeRoom(p.Size(), s.mail.most) {
			return errMessagesTooLarge
		}
		if c.Tx == nil {
			s.mail.unsent.Add(p)
			return c.Int(n, nil)
		}
		return c.Int(n, p.With(c.Tx, &s.server.Hub))
	}
}

// mailbox is what a session publishes and gets.
type mailbox struct {
	session    *Session
	subscriber pubsub.Subscriber
	unsent     pubsub.Unsent // of the EXEC or the script that runs
	most       int           // bytes of unsent
}

// init lets the session have messages. What they call may be called with keys locked.
func (m *mailbox) init() {
	s := m.session
	m.most = s.server.Options.MaxQueue
	m.subscriber.Wake = s.client.Wake
	m.subscriber.Kept = func(bytes int) { s.server.AddHeld(&s.client, bytes) }
	m.subscriber.Flooded = func() {
		s.server.Counters.Flooded.Add(1)
		s.server.Options.Logger.Warn("a subscriber does not take its messages; connection closed", "client", s.id)
		s.client.Abort()
	}
	s.client.Tracking.ID, s.client.Tracking.Mail = s.id, &m.subscriber
}

// deliver moves messages into the output, as far as there is room. It is called between
// commands only. The messages of one batch are held for the newest commit among them: none
// overtakes the write that it reports, and a sync serves all.
func (m *mailbox) deliver() {
	s := m.session
	for m.subscriber.HasMail() && !s.closed && !s.Paused() {
		from := s.out.Len()
		messages, overflow := m.subscriber.Take()
		if overflow {
			s.closed = true
			return
		}
		var ticket db.Ticket
		for i := range messages {
			m := &messages[i]
			if m.Kind >= pubsub.ToReader {
				s.client.Tracking.Write(&s.out, m)
			} else {
				m.Write(&s.out)
			}
			ticket = max(ticket, m.Ticket)
		}
		if ticket > 0 {
			s.unit.unsynced.Hold(ticket, from)
		}
		s.unit.owe(nil, from) // what a script publishes may be what it has read
	}
}

// isSubscribed reports whether the session is limited to subscriptions: in RESP2 a reply could
// not be distinguished from a message.
func (m *mailbox) isSubscribed() bool {
	s := m.session
	return s.out.Version() == 2 && m.subscriber.Listens()
}
