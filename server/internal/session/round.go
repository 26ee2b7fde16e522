package session

import (
	"errors"
	"strings"
	"time"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/dispatch"
	"github.com/stavedb/stave/server/internal/shared"
)

// The sessions of an event loop work in rounds. What is ready together is executed together: each
// session gathers its requests in turn, in the order in which they arrived, into the batch that all
// share; a command that cannot be batched runs the batch first. When all have gathered, the batch is
// run, and each session ends its round.
//
//	BeginRound, for each that is ready    what it waited for, messages, its requests
//	Batch.Run                             one transaction, one write to the log
//	EndRound, for each                    messages, counts
//
// Nothing in a round waits for a lock of the store or for the disk. A session that meets a command
// that may take long, or would have to wait, leaves: it goes back to the command and executes it
// elsewhere (ExecuteAside), as a session without a loop does. Replies that must not leave before a
// commit is durable are held back by the driver (Undurable, EndDurable).

// JoinLoop makes the session one of an event loop, whose sessions share a batch.
func (l Link) JoinLoop(shared *Batch) {
	l.inLoop, l.leaving, l.part.batch = true, false, shared
}

// BeginRound gathers what the session has to do.
func (l Link) BeginRound(now time.Time) {
	s := l.Session
	s.unit.enterTerm()
	s.wait.end()
	s.counts.since, s.begun = now, now
	s.part.rewound = false
	s.mail.deliver()
	for s.mayExecute() {
		args, err := s.parser.Next()
		if args == nil && err == nil {
			return // the rest of the round runs the batch
		}
		s.executeNext(args, err)
	}
}

// EndRound follows the execution of the batch.
func (l Link) EndRound() {
	s := l.Session
	s.mail.deliver()
	s.counts.flush()
	s.room.leave()
	s.release()
}

// Leaves reports whether the session has met a command that is not for the loop: ExecuteAside is to execute it.
func (l Link) Leaves() bool { return l.leaving }

// leave ends the session's round before the request at mark of the parser.
func (s *Session) leave(mark int) {
	s.part.rewind(mark)
	s.leaving = true
}

// isLong reports whether a command takes too long for the loop. It has changed nothing.
func isLong(err error) bool {
	return errors.Is(err, shared.ErrLong) || errors.Is(err, shared.ErrOnDisk)
}

// leavesLoop reports whether a command is to be executed again where it may wait. It has changed nothing.
func leavesLoop(err error) bool {
	return errors.Is(err, shared.ErrWouldWait) || isLong(err)
}

// ExecuteAside executes what has been fed outside of the event loop: here the session may wait. It
// goes on until it has nothing to do, as it would without a loop.
func (l Link) ExecuteAside() {
	s := l.Session
	shared := s.part.batch
	s.inLoop, s.leaving, s.part.rewound, s.part.batch = false, false, false, NewBatch()
	s.executeBuffered()
	l.JoinLoop(shared)
}

// Bounds of what the loop does itself.
const (
	// maxLoopReply is how many bytes a command may reply that works as long as its reply is. One that
	// exceeds it has done that much in vain.
	maxLoopReply = 32 << 10
)

// knowsScript reports whether EVAL is of a script that may share a transaction with other requests, and notes what is known
// of it for add. One that is not known to need all keys and declares none may need no lock, and a transaction
// without keys locks all.
func (p *batching) knowsScript(cmd *command.Command, args [][]byte) bool {
	script := p.session.scripts.Cache.Of(args[1], strings.HasPrefix(cmd.Name, "evalsha"))
	if script == nil || script.RunsApart() || !script.AllKeys.Load() && string(args[2]) == "0" {
		return false
	}
	p.known = &script.Known
	return true
}

// mayRun reports whether a script that is to be short may call a command.
func (p *scripted) mayRun(cmd *command.Command, args [][]byte) bool {
	s := p.session
	r := dispatch.New(cmd, args)
	s.now.Store = s.host.Store
	return dispatch.MayRunInScript(&r, &s.now)
}

// declaresNoWrites reports whether EVAL or FCALL is of a script whose flags say that it writes nothing.
func (p *scripted) declaresNoWrites(cmd *command.Command, args [][]byte) bool {
	s := p.session
	return s.LendToScripts().DeclaresNoWrites(cmd, args)
}

// most is how many bytes the session may reply to a command, before errExceeded ends it.
func (p *replyRoom) most(cmd *command.Command) int {
	s := p.session
	most := s.server.MostReply()
	if s.mostReply > 0 {
		most = min(most, s.mostReply)
	}
	if s.inLoop && cmd.Cost.Work == command.ByReply {
		return min(maxLoopReply, most)
	}
	return most
}

// errExceeded is the error of a command whose reply exceeds most.
func (p *replyRoom) errExceeded(c *command.Call) error {
	s := p.session
	if s.inLoop && c.Command.Cost.Work == command.ByReply {
		return shared.ErrLong
	}
	if c.Out.Exceeded() {
		return shared.ErrReplyTooLarge
	}
	return p.errShort()
}
