package session

import (
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/shared"
)

// replyMode is what CLIENT REPLY has chosen. It concerns replies, and neither messages nor the
// confirmations of SUBSCRIBE and its like, which are messages too. Errors are replies. A session whose
// mode is not replyOn batches nothing: replies are dropped one by one, as they end.
type replyMode uint8

const (
	replyOn       replyMode = iota
	replySkipNext           // CLIENT REPLY SKIP is being executed; becomes replySkip at its end
	replySkip               // the next reply is dropped
	replyOff
)

// apply drops the reply that starts at from, if the client does not want it. It is called once
// for each request that has been answered, and before messages follow the reply.
func (m *replyMode) apply(out *resp.Writer, cmd *command.Command, from int) {
	const subscribes = command.PubSub | command.WhileSubscribed
	if *m == replyOn {
		return
	}
	if *m == replySkipNext {
		*m = replySkip
		return
	}
	if cmd == nil || cmd.Flags&subscribes != subscribes {
		out.Truncate(from)
	}
	if *m == replySkip {
		*m = replyOn
	}
}

// ClientCommands is the subcommand of CLIENT that changes the session.
var ClientCommands = []*command.Command{{Name: "client|reply", Arity: 3, Flags: command.OfSession, Run: onSession(clientReply)}}

// clientReply is CLIENT REPLY. Within EXEC, where each command must have a reply, OFF and SKIP reply OK.
func clientReply(s *Session, c *command.Call) error {
	switch {
	case c.Args.Is(2, "on"):
		s.replies = replyOn
		return c.OK()
	case c.Args.Is(2, "off"):
		s.replies = replyOff
	case !c.Args.Is(2, "skip"):
		return command.ErrSyntax
	case s.replies != replyOff:
		s.replies = replySkipNext
	}
	if c.Queued {
		return c.OK()
	}
	return shared.ErrNoReply
}
