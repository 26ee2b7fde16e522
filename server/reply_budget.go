package server

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
)

// A reply is built whole before it is sent, for it shows one moment, and nobody must hold locks while a client reads.
// So long replies need memory, and all clients together must not take more of it than there is: beyond its allowance a
// session takes memory from one budget before it has it, and gives it back part by part as the client reads.
//
// A command that finds no room is given up: what it has done is rolled back, its memory is free again, and the session
// goes back to the command in its parser and waits, as for the end of a CLIENT PAUSE. Of those who wait the one that
// needs the least is served first, so that a few enormous replies do not keep out all others. The room comes from
// clients that read. If there is none after a second, those are disconnected that do not: a client that reads gets its
// whole reply.

// replyBudget is the memory for long replies, and the sessions that wait for some.
type replyBudget struct {
	resp.Budget
	pressEvery   time.Duration // how long a session waits for room before clients that do not read are disconnected
	stalledAfter time.Duration // how long a client may take for stats.StalledBytes of a long reply, when others need its memory

	mu      sync.Mutex // guards the rest, and the waits
	waiting []*roomWait
}

// roomWait is a session's place among those that wait for room.
type roomWait struct {
	session *Session
	since   time.Time
	need    int64 // bytes of the budget that its reply takes, about
	granted bool  // there is room for another attempt
}

const (
	// replyShare is which part of the memory for clients long replies may take: one in so many.
	replyShare = 2
)

// errNoRoom ends a command whose reply the budget has no room for. It has changed nothing, and is executed again.
var errNoRoom = errors.New("server: no memory for the reply")

// errRepliesTooLarge is the reply when that cannot be, or has been in vain for too long.
const errRepliesTooLarge command.Error = "ERR no memory for the reply: replies that other clients have not read take it; try again later, or ask for it in parts"

func (b *replyBudget) init(clientMemory int64) {
	b.Allowance = defaultPauseOutput + resp.PartSize
	b.Given = b.wakeNext
	b.pressEvery, b.stalledAfter = time.Second, 2*time.Second
	b.setClientMemory(clientMemory)
}

// setClientMemory follows maxmemory-clients, of which long replies have a share.
func (b *replyBudget) setClientMemory(n int64) { b.SetLimit(n / replyShare) }

// most is the longest reply that there can be room for, MaxReply at most.
func (v *Server) mostReply() int {
	most := v.options.MaxReply
	if limit := v.replies.Limit(); limit > 0 {
		most = min(most, int(limit)+v.replies.Allowance)
	}
	return most
}

// limitReply limits how long the output may become by the reply to a command. One that must not be executed twice takes
// its memory whatever the budget says: its reply is short, or it has asked for room before it began (askBefore).
func limitReply(out *resp.Writer, cmd *command.Command, limit int) {
	out.SetLimit(limit)
	out.Overdraw(!mayRepeat(cmd))
}

// mayRepeat says whether a command may be executed again after it has been given up: it only reads, or all that it does
// is rolled back.
func mayRepeat(cmd *command.Command) bool {
	return cmd.Flags&command.Describes != 0 || onlyReads(cmd) || len(cmd.Keys) > 0 || cmd.Name == "exec"
}

// isRepeatable says whether EXEC may be given up and executed again.
func (q *queue) isRepeatable() bool {
	for r := range q.requests.All() {
		cmd := r.command
		if !isPublish(cmd) && (!mayRepeat(cmd) || cmd.Flags&(command.PubSub|command.RunsScript) != 0) {
			return false
		}
	}
	return true
}

// errShort is the error of a command whose reply the budget has no room for.
func (s *Session) errShort() error {
	if s.mustNotRepeat || s.room != nil && time.Since(s.room.since) >= s.server.options.WriteTimeout {
		return errRepliesTooLarge
	}
	return errNoRoom
}

// ask is what a command asks before it reads a long value, besides the reply: whether there is memory for it.
func (s *Session) ask(n int) error {
	if !s.asking.Out.Ask(n) {
		return s.errExceeded(s.asking)
	}
	return nil
}

// askBefore asks for the room of a reply of about n bytes before a command does what cannot be repeated.
func (s *Session) askBefore(c *command.Call, n int) error {
	if n > s.maxReply(c.Command) {
		return errReplyTooLarge
	}
	c.Out.Overdraw(false)
	ok := c.Out.Ask(n)
	c.Out.GiveAsked()
	c.Out.Overdraw(true)
	if !ok {
		return s.errExceeded(c)
	}
	return nil
}

// awaitRoom lets the session wait before the request at mark of the parser, whose reply starts at from and has no room.
func (s *Session) awaitRoom(cmd *command.Command, mark, from int) {
	_, wanted := s.out.Short()
	s.out.Truncate(from)
	s.out.SetLimit(0)
	s.rewind(mark)
	b := &s.server.replies
	b.mu.Lock()
	if s.room == nil {
		s.room = &roomWait{session: s, since: time.Now()}
	}
	if !slices.Contains(b.waiting, s.room) {
		b.waiting = append(b.waiting, s.room)
		b.Wanted(true)
	}
	s.room.granted, s.room.need = false, int64(wanted)
	if limit := b.Limit(); limit > 0 {
		s.room.need = min(s.room.need+s.room.need/8, limit) // parts are not quite full
	}
	b.mu.Unlock()
	s.blockForRoom(cmd)
	b.wakeNext() // whoever had the room may have given it back before
}

func (s *Session) blockForRoom(cmd *command.Command) {
	s.block(&blocked{command: cmd, deadline: time.Now().Add(s.server.replies.pressEvery), postponed: true, forRoom: true, ended: make(chan struct{}, 1)})
}

// endRoomWait follows a wait for room, and reports whether the command is to be executed again.
func (s *Session) endRoomWait(cmd *command.Command) bool {
	b := &s.server.replies
	b.mu.Lock()
	r := s.room
	again := r.granted || time.Since(r.since) >= s.server.options.WriteTimeout
	need := int64(0)
	for _, r := range b.waiting {
		need += r.need
	}
	b.mu.Unlock()
	if again {
		return true
	}
	s.server.evictStalled(s, need)
	s.blockForRoom(cmd)
	b.wakeNext()
	return false
}

// leaveRoom gives the session's place up, unless the session waits for another attempt.
func (s *Session) leaveRoom() {
	if s.room == nil || !s.closed && (s.blocked != nil && s.blocked.forRoom || s.leaving) {
		return
	}
	s.server.replies.pass(s.room)
	s.room = nil
}

// pass serves the next in line after one that is done, or that others do not wait for because it lasts.
func (b *replyBudget) pass(done *roomWait) {
	b.mu.Lock()
	b.waiting = slices.DeleteFunc(b.waiting, func(r *roomWait) bool { return r == done })
	b.Wanted(len(b.waiting) > 0)
	b.mu.Unlock()
	b.wakeNext()
}

// wakeNext ends the wait of the session that needs the least, if there is room for it, unless another one has been
// woken and is not done. It may be called from any goroutine that holds no lock of the transport.
func (b *replyBudget) wakeNext() {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next *roomWait
	for _, r := range b.waiting {
		switch {
		case r.granted:
			return
		case next == nil || r.need < next.need:
			next = r
		}
	}
	if next != nil && b.HasRoom(next.need) && next.session.client.endWaitOf(timedOut) {
		next.granted = true
	}
}

// evictStalled disconnects clients that do not read their long replies, the one with the longest first, until there
// would be room for need bytes.
func (v *Server) evictStalled(except *Session, need int64) {
	now := time.Now()
	var stalled []*Session
	for _, s := range v.sessions() {
		if s != except && s.client.reply.IsStalled(now, v.replies.stalledAfter) && !s.client.noEvict.Load() && s.client.kill != nil {
			stalled = append(stalled, s)
		}
	}
	slices.SortFunc(stalled, func(a, b *Session) int { return int(b.client.reply.Taken() - a.client.reply.Taken()) })
	for _, s := range stalled {
		if v.replies.HasRoom(need) || need <= 0 {
			return
		}
		taken := s.client.reply.Taken()
		need -= taken
		if s.client.killOnce(&v.counters.Evicted) {
			v.options.Logger.Warn("a client does not read its replies, and others need the memory; connection closed", "client", s.id, "bytes", taken)
		}
	}
}
