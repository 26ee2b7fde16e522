package admin

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/pubsub"
)

// pubSubCommand is PUBSUB, which says who listens. SUBSCRIBE and PUBLISH are the session's.
func pubSubCommand(of source) *command.Command {
	return &command.Command{Name: "pubsub", Arity: -2, Group: command.GroupPubSub, Subcommands: pubSubSubcommands(of)}
}

// pubSubSubcommands ask the hub.
func pubSubSubcommands(of source) []*command.Command {
	return []*command.Command{
		{Name: "pubsub|channels", Arity: -2, Flags: command.Describes | command.PubSub | command.AnyState,
			Run: of.on(channels(pubsub.Channel))},
		{Name: "pubsub|numsub", Arity: -2, Flags: command.Describes | command.PubSub | command.AnyState,
			Run: of.on(countListeners(pubsub.Channel))},
		{Name: "pubsub|numpat", Arity: 2, Flags: command.Describes | command.PubSub | command.AnyState,
			Run: of.on(func(a *Caller, c *command.Call) error {
				return c.Int(a.State.Hub.Count(pubsub.Pattern), nil)
			})},
		{Name: "pubsub|shardchannels", Arity: -2, Flags: command.Describes | command.PubSub | command.AnyState,
			Run: of.on(channels(pubsub.Shard))},
		{Name: "pubsub|shardnumsub", Arity: -2, Flags: command.Describes | command.PubSub | command.AnyState,
			Run: of.on(countListeners(pubsub.Shard))},
		command.HelpRow("pubsub"),
	}
}

// channels is PUBSUB CHANNELS and SHARDCHANNELS. Names are copied under the hub's lock and matched without it, because a
// pattern of a client may take long.
func channels(to pubsub.Kind) func(*Caller, *command.Call) error {
	return func(a *Caller, c *command.Call) error {
		if len(c.Args) > 3 {
			return command.ErrUnknownOrArity(c)
		}
		names := a.State.Hub.Names(to)
		if len(c.Args) == 3 {
			pattern := c.Key(2)
			matching := names[:0]
			for i, name := range names {
				if err := c.GoesOn(i); err != nil {
					return err
				}
				if c.Matches(pattern, []byte(name)) {
					matching = append(matching, name)
				}
			}
			names = matching
		}
		return c.Names(names)
	}
}

// countListeners is PUBSUB NUMSUB and SHARDNUMSUB. A channel without subscribers is listed with 0.
func countListeners(to pubsub.Kind) func(*Caller, *command.Call) error {
	return func(a *Caller, c *command.Call) error {
		names := c.Args.Strings(2)
		c.Out.Array(2 * len(names))
		for i, n := range a.State.Hub.Counts(to, names) {
			c.Out.BulkString(names[i])
			c.Out.Int(int64(n))
		}
		return nil
	}
}
