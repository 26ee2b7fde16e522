package session

import (
	"time"

	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/shared"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
)

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
func (s *Session) errShort() error {
	if s.mustNotRepeat || s.room != nil && time.Since(s.room.Since) >= s.server.Options.WriteTimeout {
		return shared.ErrRepliesTooLarge
	}
	return shared.ErrNoRoom
}

// ask is what a command asks before it reads a long value, besides the reply: whether there is memory for it.
func (s *Session) ask(n int) error {
	if out := s.asking.Out; n > out.Reserved() && !out.Reserve(n) {
		return s.errExceeded(s.asking)
	}
	return nil
}

// askBefore asks for the room of a reply of about n bytes before a command does what cannot be repeated.
func (s *Session) askBefore(c *command.Call, n int) error {
	if n > s.maxReply(c.Command) {
		return shared.ErrReplyTooLarge
	}
	c.Out.Overdraw(false)
	ok := c.Out.Reserve(n)
	c.Out.Reserve(0)
	c.Out.Overdraw(true)
	if !ok {
		return s.errExceeded(c)
	}
	return nil
}

// awaitRoom lets the session wait before the request at mark of the parser, whose reply starts at from and has no room.
func (s *Session) awaitRoom(cmd *command.Command, mark, from int) {
	need := int64(s.out.Short())
	s.out.Truncate(from)
	s.out.SetLimit(0)
	s.rewind(mark)
	s.room = s.server.Replies.Await(s.room, &s.client, need)
	s.blockForRoom(cmd)
}

// blockForRoom lets the session wait until it is served, or it is time to look for a silent client.
func (s *Session) blockForRoom(cmd *command.Command) {
	b := &s.server.Replies
	s.block(&blocked{Wait: clients.NewPostponement(time.Now().Add(b.SilentAfter / 10)), command: cmd, forRoom: true})
	b.WakeNext() // the room may have been given back before
}

// endRoomWait follows a wait for room, and reports whether the command is to be executed again.
func (s *Session) endRoomWait(cmd *command.Command) bool {
	again := s.server.Replies.IsGranted(s.room) || time.Since(s.room.Since) >= s.server.Options.WriteTimeout
	if !again {
		s.server.CloseSilent()
		s.blockForRoom(cmd)
	}
	return again
}

// leaveRoom gives the session's place up, unless the session waits for another attempt.
func (s *Session) leaveRoom() {
	if s.room == nil || !s.closed && (s.blocked != nil && s.blocked.forRoom || s.leaving) {
		return
	}
	s.server.Replies.Pass(s.room)
	s.room = nil
}
