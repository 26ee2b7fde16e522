package server

import (
	"bytes"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
)

// queue is what MULTI has gathered.
//
// EXEC runs it in one transaction over all keys that the commands name, known before the first of
// them runs, or over the whole store if one of them may touch others. As in Redis a command that is
// refused when it is queued makes EXEC fail as a whole, and one that fails when it runs does not
// stop the others: only what it wrote itself is rolled back.
type queue struct {
	requests   []request
	keys       []string // all keys the requests name, for the locks of EXEC
	bytes      int      // memory of the requests
	writes     bool     // a request may write
	wholeStore bool     // a request looks at the keyspace as a whole
	aborted    bool     // a request was refused: EXEC will be
}

// request is one command that waits to be executed.
type request struct {
	session    *Session // whose it is; nil for one of MULTI
	command    *command.Command
	args       [][]byte
	firstKey   string // see command.Call.FirstKey
	parserMark int    // where the parser found it
	postponed  bool   // it was not executed: see Session.postpones
}

// requestOverhead is the memory of one argument besides its bytes.
const requestOverhead = 32

// enqueue keeps a command for EXEC. The arguments are copied, because the parser uses its buffer
// again, and counted with an overhead for each, because a client could fill the memory with empty
// arguments otherwise. The keys are found here, once, and EXEC locks all of them in one step: locks
// that were added one after the other could deadlock.
func (s *Session) enqueue(cmd *command.Command, args [][]byte) {
	q := s.queue
	size := 0
	for _, arg := range args {
		size += len(arg) + requestOverhead
	}
	if q.bytes+size > s.server.options.MaxQueue {
		s.reject(cmd, errQueueTooLarge)
		return
	}
	q.bytes += size
	copied := make([][]byte, len(args))
	for i, arg := range args {
		copied[i] = bytes.Clone(arg)
	}
	q.requests = append(q.requests, request{command: cmd, args: copied})
	others := len(q.keys)
	q.keys = cmd.AppendKeys(q.keys, copied)
	none := len(cmd.Keys) > 0 && len(q.keys) == others // such as LMPOP 0: it will be refused, but within a transaction
	q.writes = q.writes || cmd.IsWrite()
	q.wholeStore = q.wholeStore || none || cmd.Flags&command.WholeKeyspace != 0 || cmd.ReadsUnknownKeys(copied)
	s.out.Simple("QUEUED")
}

// runQueued executes one command of a transaction and appends its reply. Only a failure of the
// store is returned: it ends the transaction, and nothing of it is kept. SELECT among the commands
// changes the namespace of those after it, so each command gets the transaction as seen through the
// current one.
func (s *Session) runQueued(tx *db.Tx, r request, limit int) error {
	inner := command.Call{Host: &s.host, Command: r.command, Args: r.args, Out: &s.out, Queued: true}
	if tx != nil {
		var err error
		if inner.Tx, err = tx.Use(s.namespace); err != nil {
			return err
		}
	}
	stats := &s.server.commands[r.command.Index]
	stats.calls.Add(1)
	start := s.server.startTimer()
	failed, err := s.runInTx(&inner, limit)
	s.noteSlow(start, r.command, r.args, 0)
	s.feedMonitors(r.command, r.args)
	if failed {
		stats.failed.Add(1)
	}
	return err
}

// unwatch forgets what the session watches.
func (s *Session) unwatch() {
	if s.watch != nil {
		s.watch.Close()
		s.watch = nil
		s.client.watched.Store(0)
	}
}
