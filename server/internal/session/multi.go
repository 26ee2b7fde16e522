package session

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/arena"
	"github.com/stavedb/stave/server/internal/dispatch"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/stats"
)

// transactionCommands begin and end transactions. Their flag RunsInsideMulti keeps them out of the
// queue.
var transactionCommands = command.InGroup(command.GroupTransactions, []*command.Command{
	{Name: "multi", Arity: 1, Flags: command.OfSession | command.Fast | command.AllowBusy | command.RunsInsideMulti,
		Run: onSession(multiCommand)},
	{Name: "exec", Arity: 1, Flags: command.OfSession | command.SkipSlowlog | command.RunsInsideMulti, Run: onSession(execCommand)},
	{Name: "discard", Arity: 1, Flags: command.OfSession | command.Fast | command.AllowBusy | command.RunsInsideMulti,
		Run: onSession(discardCommand)},
})

// transaction is what a session has of MULTI and WATCH.
type transaction struct {
	session      *Session
	queue        *queue        // commands since MULTI; nil outside
	watch        *db.Watch     // keys that the next EXEC depends on; nil for none
	watchedBytes int           // memory of the keys in watch
	attempt      stats.Attempt // what an EXEC has called that may have to be executed again
	saveDue      bool          // a BGSAVE within the EXEC that runs
	after        []func()      // what else its commands want done at its end
}

// queue is what MULTI has gathered.
//
// EXEC runs it in one transaction over all keys that the commands name, known before the first of
// them runs, or over the whole store if one of them may touch others. As in Redis a command that is
// refused when it is queued makes EXEC fail as a whole, and one that fails when it runs does not
// stop the others: only what it wrote itself is rolled back.
type queue struct {
	dispatch.Multi
	requests arena.Blocks[queued]
	args     arena.Args // of the requests
	held     int        // memory of the requests
}

// queued is a command since MULTI.
type queued struct {
	command *command.Command
	args    [][]byte
	login   *login // of AUTH or HELLO within EXEC
}

// requestOverhead is what an argument counts for MaxQueue besides its bytes.
const requestOverhead = 32

// enqueue keeps a command for EXEC. The arguments are copied, because the parser uses its buffer
// again, and counted with an overhead for each, because a client could fill the memory with empty
// arguments otherwise. The keys are found here, once, and EXEC locks all of them in one step: locks
// that were added one after the other could deadlock.
func (m *transaction) enqueue(r *dispatch.Request) {
	s := m.session
	q, cmd := m.queue, r.Command
	size := r.Size + len(r.Args)*requestOverhead
	if q.Bytes+size > s.server.Options.MaxQueue {
		s.reject(cmd, errQueueTooLarge)
		return
	}
	copied := q.args.Copy(r.Args)
	q.requests.Add(queued{command: cmd, args: copied})
	own := *r
	own.Args = copied
	q.held += heldByRequest + len(copied)*heldByArgument + r.Size
	for _, key := range q.Add(&own, &s.now, size) {
		q.held += heldByKey + len(key)
	}
	from := s.out.Len()
	s.out.Simple("QUEUED")
	s.replies.apply(&s.out, cmd, from)
}

// run executes one command of a transaction and appends its reply. Only a failure of the
// store is returned: it ends the transaction, and nothing of it is kept. SELECT among the commands
// changes the namespace of those after it, so each command gets the transaction as seen through the
// current one.
func (m *transaction) run(tx *db.Tx, r *queued, limit int) error {
	s := m.session
	inner := command.Call{Host: &s.host, Command: r.command, Args: r.args, Out: &s.out, Queued: true}
	if tx != nil {
		var err error
		if inner.Tx, err = tx.Use(s.Namespace()); err != nil {
			return err
		}
	}
	counters := &s.server.Counters.Commands[r.command.Index]
	if s.who.isRestricted() {
		if err := m.permit(r); err != nil {
			counters.Rejected.Add(1)
			s.replyError(s.server.ErrorText(err))
			return nil
		}
	}
	start, from := s.server.StartTimer(), s.out.Len()
	s.who.login = r.login
	refusal, err := s.unit.runOne(&inner, limit)
	s.who.login = nil
	took := shared.Elapsed(start)
	if took > 0 {
		counters.Nanoseconds.Add(int64(took))
		s.server.Counters.NoteLatency(counters, took, 1)
	}
	s.server.NoteSlow(&s.client, took, r.command, r.args, 0)
	s.server.NoteLarge(&s.client, r.command, r.args, s.out.Len()-from)
	s.feedMonitors(r.command, r.args)
	m.attempt.Note(stats.Call{Command: r.command.Index, Called: true, Failed: refusal != "", Refusal: refusal})
	if !s.inLoop {
		m.attempt.Count(&s.server.Counters)
	}
	return err
}

// multiCommand is MULTI. A nested one is an error that does not spoil the transaction, as in Redis.
func multiCommand(s *Session, c *command.Call) error {
	if s.multi.queue != nil {
		return errNestedMulti
	}
	s.multi.queue = &queue{}
	return c.OK()
}

// discardCommand is DISCARD. It ends the watch too.
func discardCommand(s *Session, c *command.Call) error {
	if s.multi.queue == nil {
		return errDiscardNoMulti
	}
	s.multi.queue = nil
	s.multi.unwatch()
	return c.OK()
}

// execCommand runs the queue as one unit of the store: one commit, isolated from all others. As in
// Redis, a command that fails does not stop or undo the others; its own writes are rolled back. The
// transaction locks the watched keys with the others, so that none can change between the check and
// the commit. The limit of the reply is for all commands together. The queue is taken off the
// session first: whatever happens, MULTI is over.
func execCommand(s *Session, c *command.Call) error {
	q := s.multi.queue
	if q == nil {
		return errExecNoMulti
	}
	s.multi.queue = nil
	watch := s.multi.watch
	defer func() {
		if s.multi.queue == nil { // otherwise EXEC is executed again
			s.multi.unwatch()
		}
	}()
	if q.Aborted {
		return errExecAbort
	}
	defer s.multi.doAfter()
	if s.script.lent != nil {
		defer s.script.lent.EndExec()
	}
	s.multi.verify(q)
	s.mail.unsent.Reset()
	space, from := s.host.Store, s.out.Len()
	limit := from + s.server.MostReply()
	s.room.mustNotRepeat = !q.isRepeatable()
	defer func() { s.room.mustNotRepeat = false }()
	body := func(tx *db.Tx) error {
		if watch != nil {
			if changed, err := watch.Changed(tx); err != nil || changed {
				c.Out.NullArray()
				return err
			}
		}
		c.Out.Array(q.requests.Len())
		for r := range q.requests.All() {
			if err := s.multi.run(tx, r, limit); err != nil {
				return err
			}
		}
		return nil
	}
	keys := q.Keys
	if watch != nil {
		keys = append(keys, watch.Keys()...)
	}
	var err error
	switch {
	case q.WholeStore:
		err = s.unit.transact(q.Writes, nil, body)
	case len(keys) > 0:
		err = s.unit.transact(q.Writes, keys, body)
	default:
		if err = body(nil); err == nil {
			s.unit.owe(nil, from) // and so do the messages
			s.mail.unsent.Post(&s.server.Hub, s.unit.unsynced.Ticket)
		}
		s.mail.unsent.Drop()
	}
	if err != nil {
		// The SELECTs among the commands did not happen either.
		s.host.Store = space
	}
	if leavesLoop(err) || err == shared.ErrNoRoom {
		s.multi.queue = q
		s.multi.attempt.Truncate(0)
	}
	s.multi.attempt.Count(&s.server.Counters)
	return err
}

// doAfter does what commands within EXEC have asked for, after the commit and with no key locked: a BGSAVE, REPLICAOF. They
// have their replies by then, so an error can only be seen in the log and in INFO (rdb_last_bgsave_status).
func (m *transaction) doAfter() {
	s := m.session
	if m.saveDue {
		m.saveDue = false
		_ = s.server.Save()
	}
	after := m.after
	m.after = nil
	for _, fn := range after {
		fn()
	}
}
