package session

import (
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/shared"
)

// replyRoom is the memory that a session has for replies.
type replyRoom struct {
	session       *Session
	place         *shared.RoomWait // among those that wait for some; nil without one
	asking        *command.Call    // the command that runs in a transaction
	mustNotRepeat bool             // the EXEC that runs cannot be given up and executed again
}

// limitReply limits how long the output may become by the reply to a command. One that must not be executed twice takes
// its memory whatever the budget says: its reply is short, or it has asked for room before it began (askBefore).
func limitReply(out *resp.Writer, cmd *command.Command, limit int) {
	out.SetLimit(limit)
	out.Overdraw(!cmd.Cost.Repeats)
}

// isRepeatable says whether EXEC may be given up and executed again.
func (q *queue) isRepeatable() bool {
	for r := range q.requests.All() {
		cmd := r.command
		if !cmd.Publishes() && (!cmd.Cost.Repeats || cmd.Flags&(command.PubSub|command.RunsScript) != 0) {
			return false
		}
	}
	return true
}

// errShort is the error of a command whose reply the budget has no room for.
func (p *replyRoom) errShort() error {
	s := p.session
	if p.mustNotRepeat || p.place != nil && time.Since(p.place.Since) >= s.server.Options.WriteTimeout {
		return shared.ErrRepliesTooLarge
	}
	return shared.ErrNoRoom
}

// ask is what a command asks before it reads a long value, besides the reply: whether there is memory for it.
func (p *replyRoom) ask(n int) error {
	if out := p.asking.Out; n > out.Reserved() && !out.Reserve(n) {
		return p.errExceeded(p.asking)
	}
	return nil
}

// askBefore asks for the room of a reply of about n bytes before a command does what cannot be repeated.
func (p *replyRoom) askBefore(c *command.Call, n int) error {
	if n > p.most(c.Command) {
		return shared.ErrReplyTooLarge
	}
	c.Out.Overdraw(false)
	ok := c.Out.Reserve(n)
	c.Out.Reserve(0)
	c.Out.Overdraw(true)
	if !ok {
		return p.errExceeded(c)
	}
	return nil
}

// await lets the session wait before the request at mark of the parser, whose reply starts at from and has no room.
func (p *replyRoom) await(cmd *command.Command, mark, from int) {
	s := p.session
	need := int64(s.out.Short())
	s.out.Truncate(from)
	s.out.SetLimit(0)
	s.part.rewind(mark)
	p.place = s.server.Replies.Await(p.place, &s.client, need)
	p.block(cmd)
}

// block lets the session wait until it is served, or it is time to look for a silent client.
func (p *replyRoom) block(cmd *command.Command) {
	s := p.session
	b := &s.server.Replies
	s.wait.begin(&blocked{Wait: clients.NewPostponement(time.Now().Add(b.SilentAfter / 10)), command: cmd, forRoom: true})
	b.WakeNext() // the room may have been given back before
}

// endWait follows a wait for room, and reports whether the command is to be executed again.
func (p *replyRoom) endWait(cmd *command.Command) bool {
	s := p.session
	again := s.server.Replies.IsGranted(p.place) || time.Since(p.place.Since) >= s.server.Options.WriteTimeout
	if !again {
		s.server.CloseSilent()
		p.block(cmd)
	}
	return again
}

// leave gives the session's place up, unless the session waits for another attempt.
func (p *replyRoom) leave() {
	s := p.session
	if p.place == nil || !s.closed && (s.wait.current != nil && s.wait.current.forRoom || s.leaving) {
		return
	}
	s.server.Replies.Pass(p.place)
	p.place = nil
}
