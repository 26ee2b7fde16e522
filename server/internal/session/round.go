package session

import (
	"strings"
	"time"

	"github.com/stavedb/stave/server/internal/shared"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/scripting"
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
	l.inLoop, l.leaving, l.batch = true, false, shared
}

// BeginRound gathers what the session has to do.
func (l Link) BeginRound(now time.Time) {
	s := l.Session
	s.endWait()
	s.statsSince, s.begun = now, now
	s.rewound = false
	s.deliverMessages()
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
	s.deliverMessages()
	s.flushStats()
	s.leaveRoom()
	s.release()
}

// Leaves reports whether the session has met a command that is not for the loop: ExecuteAside is to execute it.
func (l Link) Leaves() bool { return l.leaving }

// leave ends the session's round before the request at mark of the parser.
func (s *Session) leave(mark int) {
	s.rewind(mark)
	s.leaving = true
}

// ExecuteAside executes what has been fed outside of the event loop: here the session may wait. It
// goes on until it has nothing to do, as it would without a loop.
func (l Link) ExecuteAside() {
	s := l.Session
	shared := s.batch
	s.inLoop, s.leaving, s.rewound, s.batch = false, false, false, NewBatch()
	s.executeBuffered()
	l.JoinLoop(shared)
}

// Bounds of what the loop does itself.
const (
	// maxLoopReply is how many bytes a command may reply that works as long as its reply is. One that
	// exceeds it has done that much in vain.
	maxLoopReply = 32 << 10
	// maxWoken is how many waiters a command may serve, about 2 us each.
	maxWoken = 256
)

// staysInLoop reports whether the loop executes a command itself, because that takes little time.
func (s *Session) staysInLoop(cmd *command.Command, args [][]byte) bool {
	if s.queue != nil && cmd.Flags&command.RunsInsideMulti == 0 {
		return true // it is queued only
	}
	size := sizeOf(args)
	switch {
	case size > maxBatchBytes, cmd.Flags&command.NoAuth != 0 && verifiesPassword(cmd, args):
		return false
	case cmd.Name == "exec":
		return s.queue == nil || s.queue.isQuick(s)
	case cmd.Name == "publish":
		return s.server.Hub.MatchesQuickly(len(args[1]))
	case cmd.Flags&command.RunsScript != 0:
		return scriptStaysInLoop(s.server, cmd)
	}
	return (cmd.IsQuick(args) || cmd.IsSized()) && s.server.NotifiesQuickly(size, len(args)) && wakesFew(s.host.Store, cmd, args)
}

// scriptStaysInLoop reports whether the loop tries to run scripts. A function may have to be compiled first; what
// MONITOR shows must not be repeated.
func scriptStaysInLoop(v *shared.State, cmd *command.Command) bool {
	return strings.HasPrefix(cmd.Name, "eval") && !v.Hub.Monitored()
}

// canBatchScript returns what is known of a script that may share a transaction with other requests; nil if it may not.
// One that is not known to need all keys and declares none may need no lock, and a transaction without keys locks all.
func (s *Session) canBatchScript(cmd *command.Command, args [][]byte) *scripting.Known {
	v := s.server
	if !scriptStaysInLoop(v, cmd) {
		return nil
	}
	p := s.scripts.Cache.Of(args[1], strings.HasPrefix(cmd.Name, "evalsha"))
	if p == nil || p.RunsApart() || !p.AllKeys.Load() && string(args[2]) == "0" {
		return nil
	}
	return &p.Known
}

// runsInLoop reports whether a script that runs in the loop may call a command there: one that takes little time, or
// asks now and then whether to go on.
func (s *Session) runsInLoop(cmd *command.Command, args [][]byte) bool {
	if cmd.Publishes() {
		return s.server.Hub.MatchesQuickly(len(args[1]))
	}
	if cmd.Flags&command.WholeKeyspace != 0 || len(cmd.Keys) == 0 && cmd.Flags&command.Fast == 0 {
		return false
	}
	size := sizeOf(args)
	return size <= maxBatchBytes && (cmd.IsQuick(args) || cmd.IsSized() || cmd.IsStepped()) && s.server.NotifiesQuickly(size, len(args)) && wakesFew(s.host.Store, cmd, args)
}

// wakesFew reports whether a command serves few of those who wait for its keys, which it does within its transaction.
// One of a list or a sorted set serves a waiter for each element that it gives; one that gives or deletes a stream, or
// moves a key, may serve all.
func wakesFew(store *db.Store, cmd *command.Command, args [][]byte) bool {
	if !cmd.IsWrite() || store.Waiters() <= maxWoken {
		return true
	}
	if (cmd.Group == command.GroupList || cmd.Group == command.GroupSortedSet) && len(args) <= maxWoken {
		return true
	}
	return store.Waiters(cmd.AppendKeys(nil, args)...) <= maxWoken
}

// isQuick reports whether EXEC takes little time.
func (q *queue) isQuick(s *Session) bool {
	return !q.slow && !q.wholeStore && (!q.writes || s.host.Store.Waiters(q.keys...) <= maxWoken) && q.requests.Len() <= maxBatch && q.bytes <= 2*maxBatchBytes && s.server.NotifiesQuickly(q.bytes, q.requests.Len()) &&
		(s.watch == nil || s.watch.Len() <= maxBatch)
}

// maxReply is how many bytes the session may reply to a command, before errExceeded ends it.
func (s *Session) maxReply(cmd *command.Command) int {
	most := s.server.MostReply()
	if s.mostReply > 0 {
		most = min(most, s.mostReply)
	}
	if s.inLoop && cmd.IsSized() {
		return min(maxLoopReply, most)
	}
	return most
}

// errExceeded is the error of a command whose reply exceeds maxReply.
func (s *Session) errExceeded(c *command.Call) error {
	if s.inLoop && c.Command.IsSized() {
		return shared.ErrLong
	}
	if c.Out.Exceeded() {
		return shared.ErrReplyTooLarge
	}
	return s.errShort()
}
