package server

import (
	"maps"
	"slices"
	"strings"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/structures"
)

// The handlers of SUBSCRIBE and PUBLISH; pubsub.go has the hub, pubsub_mailbox.go the way of a
// message. In RESP2 a session that has subscribed may send only these commands, because replies and
// messages look alike; in RESP3 messages are pushes, and everything is allowed.

const subscribing = command.PubSub | sessionFlags

// pubSubCommands subscribe and publish. Subscribing replies with pushes in RESP3, one for each
// channel, not with a reply.
var pubSubCommands = command.InGroup(command.GroupPubSub, []*command.Command{
	{Name: "subscribe", Arity: -2, Flags: subscribing | command.WhileSubscribed, Since: "2.0.0", Complexity: "O(1) a channel",
		Summary: "Listens to channels.", Syntax: "channel [channel ...]",
		Run: onSession(func(s *Session, c *command.Call) error { return s.subscribe(c, toChannel) })},
	{Name: "psubscribe", Arity: -2, Flags: subscribing | command.WhileSubscribed, Since: "2.0.0", Complexity: "O(1) a pattern",
		Summary: "Listens to the channels that match patterns.", Syntax: "pattern [pattern ...]",
		Run: onSession(func(s *Session, c *command.Call) error { return s.subscribe(c, toPattern) })},
	{Name: "ssubscribe", Arity: -2, Flags: subscribing | command.WhileSubscribed, Since: "7.0.0",
		Channels: command.ManyKeys("not_key"), Complexity: "O(1) a channel", Summary: "Listens to shard channels.",
		Syntax: "shardchannel [shardchannel ...]",
		Run:    onSession(func(s *Session, c *command.Call) error { return s.subscribe(c, toShard) })},
	{Name: "unsubscribe", Arity: -1, Flags: subscribing | command.WhileSubscribed, Since: "2.0.0", Complexity: "O(1) a channel",
		Summary: "Stops listening to channels, or to all.", Syntax: "[channel [channel ...]]",
		Run: onSession(func(s *Session, c *command.Call) error { return s.unsubscribe(c, toChannel) })},
	{Name: "punsubscribe", Arity: -1, Flags: subscribing | command.WhileSubscribed, Since: "2.0.0", Complexity: "O(1) a pattern",
		Summary: "Stops listening to the channels that match patterns, or any.", Syntax: "[pattern [pattern ...]]",
		Run: onSession(func(s *Session, c *command.Call) error { return s.unsubscribe(c, toPattern) })},
	{Name: "sunsubscribe", Arity: -1, Flags: subscribing | command.WhileSubscribed, Since: "7.0.0",
		Channels: command.ManyKeys("not_key"), Complexity: "O(1) a channel",
		Summary: "Stops listening to shard channels, or to all.", Syntax: "[shardchannel [shardchannel ...]]",
		Run: onSession(func(s *Session, c *command.Call) error { return s.unsubscribe(c, toShard) })},
	{Name: "publish", Arity: 3, Flags: command.PubSub | anyStateFlags | command.Fast, Since: "2.0.0",
		Complexity: "O(n + m), n being the number of subscribers of the channel, m that of all patterns",
		Summary:    "Posts a message to a channel and returns how many heard it.", Syntax: "channel message",
		Run: onSession(func(s *Session, c *command.Call) error { return s.publish(c, toChannel) })},
	{Name: "spublish", Arity: 3, Flags: command.PubSub | anyStateFlags | command.Fast, Since: "7.0.0",
		Channels: command.OneKey("not_key"), Complexity: "O(n), n being the number of subscribers of the channel",
		Summary: "Posts a message to a shard channel and returns how many heard it.", Syntax: "shardchannel message",
		Run: onSession(func(s *Session, c *command.Call) error { return s.publish(c, toShard) })},
	{
		Name: "pubsub", Arity: -2, Since: "2.8.0", Complexity: "Depends on the subcommand",
		Summary: "A container for commands about who listens to what.", Subcommands: pubSubSubcommands,
	},
})

var pubSubSubcommands = []*command.Command{
	{Name: "pubsub|channels", Arity: -2, Flags: command.PubSub | anyStateFlags, Since: "2.8.0",
		Complexity: "O(n), n being the number of channels", Summary: "Returns the channels that somebody listens to.",
		Syntax: "[pattern]", Run: onSession(func(s *Session, c *command.Call) error { return s.channels(c, toChannel) })},
	{Name: "pubsub|numsub", Arity: -2, Flags: command.PubSub | anyStateFlags, Since: "2.8.0", Complexity: "O(1) a channel",
		Summary: "Returns how many listen to channels.", Syntax: "[channel [channel ...]]",
		Run: onSession(func(s *Session, c *command.Call) error { return s.countListeners(c, toChannel) })},
	{Name: "pubsub|numpat", Arity: 2, Flags: command.PubSub | anyStateFlags, Since: "2.8.0", Complexity: "O(1)",
		Summary: "Returns how many patterns somebody listens to.",
		Run: onSession(func(s *Session, c *command.Call) error {
			return c.Int(len(s.server.hub.names(toPattern)), nil)
		})},
	{Name: "pubsub|shardchannels", Arity: -2, Flags: command.PubSub | anyStateFlags, Since: "7.0.0",
		Complexity: "O(n), n being the number of channels", Summary: "Returns the shard channels that somebody listens to.",
		Syntax: "[pattern]", Run: onSession(func(s *Session, c *command.Call) error { return s.channels(c, toShard) })},
	{Name: "pubsub|shardnumsub", Arity: -2, Flags: command.PubSub | anyStateFlags, Since: "7.0.0", Complexity: "O(1) a channel",
		Summary: "Returns how many listen to shard channels.", Syntax: "[shardchannel [shardchannel ...]]",
		Run: onSession(func(s *Session, c *command.Call) error { return s.countListeners(c, toShard) })},
	{Name: "pubsub|help", Arity: 2, Flags: anyStateFlags, Since: "6.2.0", Complexity: "O(1)", Summary: "Lists the subcommands.",
		Run: command.Help},
}

// subscribeVerbs name the replies of subscribing to and leaving each audience.
var subscribeVerbs = [audiences][2]string{
	toChannel: {"subscribe", "unsubscribe"}, toPattern: {"psubscribe", "punsubscribe"}, toShard: {"ssubscribe", "sunsubscribe"},
}

// subscribe replies once for each channel.
func (s *Session) subscribe(c *command.Call, to audience) error {
	if c.Queued && to == toShard {
		return command.Errorf("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
	}
	for _, name := range c.Strings(1) {
		s.server.hub.subscribe(s, to, name)
		s.confirm(c, subscribeVerbs[to][0], to, name)
	}
	return nil
}

// unsubscribe replies once for each channel, and once if there is none to leave.
func (s *Session) unsubscribe(c *command.Call, to audience) error {
	names := c.Strings(1)
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(s.subscribed[to]))
	}
	for _, name := range names {
		s.server.hub.unsubscribe(s, to, name)
		s.confirm(c, subscribeVerbs[to][1], to, name)
	}
	if len(names) == 0 {
		c.Out.Push(3)
		c.Out.BulkString(subscribeVerbs[to][1])
		c.Out.Null()
		c.Out.Int(int64(s.subscriptionCount(to)))
	}
	return nil
}

// confirm pushes that a subscription has begun or ended, and how many there are now.
func (s *Session) confirm(c *command.Call, verb string, to audience, name string) {
	c.Out.Push(3)
	c.Out.BulkString(verb)
	c.Out.BulkString(name)
	c.Out.Int(int64(s.subscriptionCount(to)))
}

// subscriptionCount is the number in the replies to subscriptions: shard channels are counted
// separately.
func (s *Session) subscriptionCount(to audience) int {
	if to == toShard {
		return len(s.subscribed[toShard])
	}
	return len(s.subscribed[toChannel]) + len(s.subscribed[toPattern])
}

// publish posts at once, also within EXEC. A subscriber must not see a write that can be lost with
// what the same client wrote before, so the message has the ticket of that.
func (s *Session) publish(c *command.Call, to audience) error {
	n := s.server.hub.publish(message{to: to, channel: c.Key(1), payload: c.Key(2), ticket: s.undurable})
	return c.Int(n, nil)
}

// channels is PUBSUB CHANNELS and SHARDCHANNELS.
func (s *Session) channels(c *command.Call, to audience) error {
	if len(c.Args) > 3 {
		return errUnknownOrArity(c)
	}
	names := s.server.hub.names(to)
	if len(c.Args) == 3 {
		pattern := c.Key(2)
		names = slices.DeleteFunc(names, func(name string) bool { return !structures.Match(pattern, []byte(name)) })
	}
	return c.Names(names)
}

// errUnknownOrArity is what Redis says of a subcommand with too many arguments for it.
func errUnknownOrArity(c *command.Call) command.Error {
	return command.Errorf("ERR unknown subcommand or wrong number of arguments for '%s'. Try %s HELP.",
		command.Quoted(c.Arg(1)), strings.ToUpper(c.Command.Container.Name))
}

// countListeners is PUBSUB NUMSUB and SHARDNUMSUB. A channel without subscribers is listed with 0.
func (s *Session) countListeners(c *command.Call, to audience) error {
	names := c.Strings(2)
	c.Out.Array(2 * len(names))
	for i, n := range s.server.hub.subscribers(to, names) {
		c.Out.BulkString(names[i])
		c.Out.Int(int64(n))
	}
	return nil
}
