package session

import (
	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/arena"
	"github.com/stavedb/stave/server/internal/dispatch"
	"github.com/stavedb/stave/server/internal/shared"
)

// transaction is what a session has of MULTI and WATCH.
type transaction struct {
	session      *Session
	queue        *queue    // commands since MULTI; nil outside
	watch        *db.Watch // keys that the next EXEC depends on; nil for none
	watchedBytes int       // memory of the keys in watch
	saveDue      bool      // a BGSAVE within the EXEC that runs
	after        []func()  // what else its commands want done at its end
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
	stats := &s.server.Counters.Commands[r.command.Index]
	if s.who.isRestricted() {
		if err := m.permit(r); err != nil {
			stats.Rejected.Add(1)
			s.replyError(s.server.ErrorText(err))
			return nil
		}
	}
	stats.Calls.Add(1)
	start := s.server.StartTimer()
	s.who.login = r.login
	refusal, err := s.unit.runOne(&inner, limit)
	s.who.login = nil
	took := shared.Elapsed(start)
	if took > 0 {
		stats.Nanoseconds.Add(int64(took))
		s.server.Counters.NoteLatency(stats, took, 1)
	}
	s.server.NoteSlow(&s.client, took, r.command, r.args, 0)
	s.feedMonitors(r.command, r.args)
	if refusal != "" {
		stats.Failed.Add(1)
		s.server.Counters.CountError(refusal)
	}
	return err
}

// unwatch forgets what the session watches. It must be called at the end of every session that has watched something:
// the store notes changes of those keys until then.
func (m *transaction) unwatch() {
	s := m.session
	if m.watch != nil {
		m.watch.Close()
		m.watch, m.watchedBytes = nil, 0
		s.client.Watched.Store(0)
	}
}
