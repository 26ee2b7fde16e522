package server

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
)

// A client that pipelines a hundred SETs sends them in one packet. One by one they would take a
// hundred sets of locks and a hundred writes to the log; as a batch they take one of each. Only
// what has arrived is batched: nothing waits for more to come, so a lone command is as fast as
// without batches.
//
// A batch is one commit. A crash keeps all of its writes or none, which a client cannot tell from a
// crash a moment earlier or later, since none of its commands had been answered.

// batch is a run of pipelined commands that have arrived together and are executed as one unit of
// the store: one set of locks and one write to the log for all of them, which is what a write costs
// most. No reply leaves before all are committed, so a client cannot tell, except by the speed;
// each command still fails alone. Only quick commands on keys are batched, so that no other client
// waits long for the locks.
type batch struct {
	requests []request
	args     [][]byte // backs the requests' arguments, whose bytes stay in the parser's buffer
	keys     []string // of all requests
	bytes    int      // of all arguments
	writes   bool     // a request may write
	done     int      // requests that have been executed
}

// Bounds of a batch. They bound how long other clients wait for the locks of its keys, and how much
// is repeated if the output is full before its end.
const (
	maxBatch      = 64       // commands
	maxBatchBytes = 64 << 10 // of arguments
)

// addToBatch puts a request into the batch, if it may be in one with those before it. It copies the
// slice headers of the arguments, not their bytes: those stay in the parser's buffer until the
// batch has run.
func (s *Session) addToBatch(cmd *command.Command, args [][]byte) bool {
	b := &s.batch
	if !cmd.CanBatch() || len(b.requests) == maxBatch {
		return false
	}
	size := 0
	for _, arg := range args {
		size += len(arg)
	}
	if b.bytes+size > maxBatchBytes {
		return false
	}
	from, firstKey := len(b.args), len(b.keys)
	b.args = append(b.args, args...)
	b.keys = cmd.AppendKeys(b.keys, args)
	r := request{command: cmd, args: b.args[from:len(b.args):len(b.args)], parserMark: s.parser.Mark()}
	if cmd.StartsWithKey() && len(b.keys) > firstKey {
		r.firstKey = b.keys[firstKey]
	}
	b.requests = append(b.requests, r)
	b.bytes += size
	b.writes = b.writes || cmd.IsWrite()
	return true
}

// runBatch executes the batch, and reports whether it did so to its end. If enough replies wait for
// the client before that, or others must be served, the parser goes back to the first command that
// was not executed. A single request runs as a command of its own, without a savepoint. The slices
// are cleared, so that a batch keeps no argument alive after it, and used again.
func (s *Session) runBatch() bool {
	b := &s.batch
	b.done = 0
	switch len(b.requests) {
	case 0:
		return true
	case 1:
		s.run(b.requests[0].command, b.requests[0].args)
		b.done = 1
	default:
		from, start := s.out.Len(), s.server.startTimer()
		if err := s.catchPanic(s.transactBatchFunc); err != nil {
			s.failBatch(from, err)
			b.done = len(b.requests)
		}
		s.noteSlow(start, b.requests[0].command, b.requests[0].args, b.done-1)
		for i := range b.done {
			s.feedMonitors(b.requests[i].command, b.requests[i].args)
		}
		s.out.SetLimit(0)
		s.call = command.Call{}
	}
	complete := b.done == len(b.requests)
	if !complete {
		s.parser.Rewind(b.requests[b.done].parserMark)
	}
	clear(b.requests)
	clear(b.args)
	clear(b.keys)
	b.requests, b.args, b.keys, b.bytes, b.writes = b.requests[:0], b.args[:0], b.keys[:0], 0, false
	return complete
}

// transactBatch is the transaction of a batch.
func (s *Session) transactBatch() error {
	return s.transact(s.batch.writes, s.batch.keys, s.runBatchInTxFunc)
}

// runBatchInTx executes the requests in a transaction, until enough replies wait for the client or
// others must be served. A request that is refused is rolled back to its own savepoint, and the
// batch continues.
func (s *Session) runBatchInTx(tx *db.Tx) error {
	for i := range s.batch.requests {
		r := &s.batch.requests[i]
		t := s.statsFor(r.command)
		t.calls++
		from, handedOver := s.out.Len(), true
		s.call = command.Call{Host: &s.host, Command: r.command, Args: r.args, FirstKey: r.firstKey, Tx: tx, Out: &s.out}
		failed, err := s.runInTx(&s.call, from+s.server.options.MaxReply)
		switch {
		case err != nil:
			return err
		case failed:
			t.failed++
		case r.command.Flags&command.ReadOnly != 0:
			t.countRead(s.out.Bytes()[from:])
		default:
			// Who waits comes before the next command, as if each were alone: if need be by ending
			// the batch here.
			handedOver = tx.ServeWaiters()
		}
		s.batch.done++
		if s.Paused() || !handedOver {
			break
		}
	}
	return nil
}

// failBatch answers every command of a batch that the store could not carry out, or could not
// commit, with the error.
func (s *Session) failBatch(from int, err error) {
	s.out.Truncate(from)
	text := errorText(err)
	for range s.batch.requests {
		s.replyError(text)
		if s.closed {
			return // after a panic: one error is enough for the log of a client that is disconnected
		}
	}
}
