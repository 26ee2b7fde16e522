package server

import (
	"time"

	"github.com/stavedb/stave/server/command"
)

// The sessions of an event loop work in rounds. What is ready together is executed together: each
// session gathers its requests in turn, in the order in which they arrived, into the batch that all
// share; a command that cannot be batched runs the batch first. When all have gathered, the batch is
// run, and each session ends its round.
//
//	beginRound, for each that is ready    what it waited for, messages, its requests
//	batch.run                             one transaction, one write to the log
//	endRound, for each                    messages, counts
//
// Nothing in a round waits for a lock of the store or for the disk. A session that meets a command
// that may take long, or would have to wait, leaves: it goes back to the command and executes it
// elsewhere (executeAside), as a session without a loop does. Replies that must not leave before a
// commit is durable are held back by the driver (undurable, endDurable).

// joinLoop makes the session one of an event loop, whose sessions share a batch.
func (s *Session) joinLoop(shared *batch) {
	s.inLoop, s.leaving, s.batch = true, false, shared
}

// beginRound gathers what the session has to do.
func (s *Session) beginRound(now time.Time) {
	s.endWait()
	s.statsSince = now
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

// endRound follows the execution of the batch.
func (s *Session) endRound() {
	s.deliverMessages()
	s.flushStats()
}

// leave ends the session's round before the request at mark of the parser.
func (s *Session) leave(mark int) {
	s.rewind(mark)
	s.leaving = true
}

// executeAside executes what has been fed outside of the event loop: here the session may wait. It
// goes on until it has nothing to do, as it would without a loop.
func (s *Session) executeAside() {
	shared := s.batch
	s.inLoop, s.leaving, s.rewound, s.batch = false, false, false, newBatch()
	s.executeBuffered()
	s.joinLoop(shared)
}

// maxPatternBytes and maxMatched bound what PUBLISH may do in an event loop: it matches every pattern
// with the name of the channel.
const (
	maxPatternBytes = 16 << 10 // bytes of all patterns
	maxMatched      = 256      // bytes of the channel's name
)

// staysInLoop reports whether the loop executes a command itself, because that takes little time.
func (s *Session) staysInLoop(cmd *command.Command, args [][]byte) bool {
	if s.queue != nil && cmd.Flags&command.RunsInsideMulti == 0 {
		return true // it is queued only
	}
	size := 0
	for _, arg := range args {
		size += len(arg)
	}
	if size > maxBatchBytes || !cmd.IsQuick() {
		return false
	}
	if cmd.Name == "publish" {
		return s.server.hub.patternBytes.Load() == 0 || s.server.hub.patternBytes.Load() <= maxPatternBytes && len(args[1]) <= maxMatched
	}
	return true
}
