package server

import (
	"bytes"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
)

var transactionCommands = []*command.Command{
	{
		Name: "multi", Arity: 1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.RunsInsideMulti, Group: command.GroupTransactions,
		Since: "1.2.0", Complexity: "O(1)", Run: onSession(multiCommand),
		Summary: "Starts a transaction: commands are queued until EXEC.",
	},
	{
		Name: "exec", Arity: 1, Flags: command.NoScript | command.Loading | command.Stale | command.SkipSlowlog | command.RunsInsideMulti, Group: command.GroupTransactions,
		Since: "1.2.0", Complexity: "The sum of the queued commands", Run: onSession(execCommand),
		Summary: "Runs the queued commands as one atomic commit and returns their replies.",
	},
	{
		Name: "discard", Arity: 1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.RunsInsideMulti, Group: command.GroupTransactions,
		Since: "2.0.0", Complexity: "O(n), n being the number of queued commands", Run: onSession(discardCommand),
		Summary: "Drops the queued commands and ends the transaction.",
	},
}

// queue is what MULTI has gathered.
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
	command    *command.Command
	args       [][]byte
	firstKey   string // see call.first
	parserMark int    // where the parser found it
}

// requestOverhead is the memory of one argument beside its bytes.
const requestOverhead = 32

// enqueue keeps a command for EXEC.
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

func multiCommand(s *Session, c *command.Call) error {
	if s.queue != nil {
		return errNestedMulti
	}
	s.queue = &queue{}
	return c.OK()
}

func discardCommand(s *Session, c *command.Call) error {
	if s.queue == nil {
		return errDiscardNoMulti
	}
	s.queue = nil
	s.unwatch()
	return c.OK()
}

// execCommand runs the queue as one unit of the store: one commit, isolated from everybody else. As in Redis, a command
// that fails does not stop or undo the others; what it wrote itself is undone.
func execCommand(s *Session, c *command.Call) error {
	q := s.queue
	if q == nil {
		return errExecNoMulti
	}
	s.queue = nil
	watch := s.watch
	defer s.unwatch()
	if q.aborted {
		return errExecAbort
	}
	before, space := s.namespace, s.host.Store
	limit := s.out.Len() + s.server.options.MaxReply
	body := func(tx *db.Tx) error {
		if watch != nil {
			if changed, err := watch.Changed(tx); err != nil || changed {
				c.Out.NullArray()
				return err
			}
		}
		c.Out.Array(len(q.requests))
		for _, r := range q.requests {
			if err := s.runQueued(tx, r, limit); err != nil {
				return err
			}
		}
		return nil
	}
	keys := q.keys
	if watch != nil {
		keys = append(keys, watch.Keys()...)
	}
	var err error
	switch {
	case q.wholeStore:
		err = s.transact(q.writes, nil, body)
	case len(keys) > 0:
		err = s.transact(q.writes, keys, body)
	default:
		err = body(nil)
	}
	if err != nil {
		// The SELECTs among the commands did not happen either.
		s.namespace, s.host.Store = before, space
	}
	return err
}

// runQueued executes one command of a transaction and appends its reply. Only a failure of the store is returned: it ends
// the transaction, and nothing of it is kept.
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
