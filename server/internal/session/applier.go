package session

import (
	"fmt"
	"math"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/dispatch"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/shared"
)

// Applier executes what a master sends, as an EXEC that never ends: what comes together is one transaction, whose last
// record says where the store stands in the master's stream. So a position and what it stands for are one commit, and each
// command of the master is executed exactly once, whatever is killed.
//
// It asks nobody for permission: the master has. So it executes only what changes data, and messages. Nothing expires in the transactions, and replies go nowhere. A command
// that fails, as it did not on the master, means that the two differ: the transaction is rolled back, and the error is a
// *shared.DivergedError. Others are of the store.
type Applier struct {
	session *Session
	skip    func() bool // whether a command that fails is to be skipped
	skipped func(*shared.DivergedError)

	queued []queued // the commands of a transaction, and
	multi  dispatch.Multi
}

// keepQueued is the number of commands, of a transaction of the master, whose place is kept for the next one.
const keepQueued = 1 << 10

// NewApplier returns an applier that has a session to itself.
func NewApplier(s *Session, skip func() bool, skipped func(*shared.DivergedError)) *Applier {
	s.NeverWait()
	// The master has sent a message; how much comes together is bounded by the link.
	s.mail.most = math.MaxInt
	s.who.setUser(acl.NewTrial(s.server.Table).Default(), true) // who may do everything
	return &Applier{session: s, skip: skip, skipped: skipped}
}

// Close ends the session.
func (a *Applier) Close() { a.session.Close() }

// Apply executes commands, and notes the position after them, in one commit, which is as durable as the store's sync mode
// promises when it returns.
func (a *Applier) Apply(commands []replication.Command, after replication.Origin) error {
	s := a.session
	if len(commands) == 1 {
		if done, err := a.applyWhole(commands[0], after); done {
			return err
		}
	}
	if err := a.prepare(commands); err != nil {
		return err
	}
	keys := a.multi.Keys
	switch {
	case a.multi.WholeStore:
		keys = nil
	case len(keys) == 0: // messages only
		keys = []string{""}
	}
	s.mail.unsent.Reset()
	err := s.catchPanic(func() error {
		return s.unit.transact(true, keys, func(tx *db.Tx) error {
			serverside.DB.Apply(tx)
			serverside.DB.Prefetch(tx)
			for i := range a.queued {
				if err := a.run(tx, &a.queued[i], commands[i].Database); err != nil {
					return err
				}
			}
			return serverside.DB.PutOrigin(tx, after)
		})
	})
	if s.script.lent != nil {
		s.script.lent.EndExec()
	}
	if clear(a.queued); cap(a.queued) > keepQueued {
		a.queued, a.multi.Keys = nil, nil
	}
	s.out.Discard(s.out.Len())
	if s.closed && err == nil {
		err = shared.ErrPanicked
	}
	if ticket := s.unit.unsynced.Ticket; err == nil && ticket != 0 {
		s.unit.unsynced.Ticket = 0
		err = s.host.Store.WaitDurable(ticket)
	}
	return err
}

// prepare finds the commands and their keys.
func (a *Applier) prepare(commands []replication.Command) error {
	s := a.session
	a.queued, a.multi = a.queued[:0], dispatch.Multi{Keys: a.multi.Keys[:0]}
	for _, c := range commands {
		cmd, err := s.server.Table.Resolve(c.Args)
		var r dispatch.Request
		if err == nil {
			if r = dispatch.New(cmd, c.Args); !isSentByMasters(&r, s.situation()) {
				err = errNotSent
			}
		}
		if err != nil {
			if err := a.differs(diverged(c.Args, c.Database, s.server.ErrorText(err))); err != nil {
				return err
			}
			cmd = nil
		} else {
			a.multi.Add(&r, s.situation(), r.Size)
		}
		a.queued = append(a.queued, queued{command: cmd, args: c.Args})
	}
	return nil
}

// isSentByMasters reports whether a master has a reason to send a command: it writes, is a message, or is a script, of a
// master before Redis 7. Nothing else is executed, for everything is permitted here.
func isSentByMasters(r *dispatch.Request, now *dispatch.Situation) bool {
	name := r.Command.Name
	return dispatch.Replicates(r, now) || r.Command.Flags&command.RunsScript != 0 || name == "script|load" || name == "script|flush"
}

const errNotSent command.Error = "ERR a master sends no such command"

// run executes one command.
func (a *Applier) run(tx *db.Tx, q *queued, database int) error {
	s := a.session
	if q.command == nil {
		return nil
	}
	if s.Namespace() != database {
		if err := s.setNamespace(database); err != nil {
			return a.differs(diverged(q.args, database, s.server.ErrorText(err)))
		}
	}
	from := s.out.Len()
	err := s.multi.run(tx, q, from+s.server.MostReply())
	reply := s.out.From(from)
	if err == nil && len(reply) > 0 && reply[0] == '-' {
		err = a.differs(diverged(q.args, database, firstLine(reply[1:])))
	}
	s.out.Truncate(from)
	return err
}

// differs skips a command that fails, or returns its error.
func (a *Applier) differs(d *shared.DivergedError) error {
	if !a.skip() {
		return d
	}
	a.skipped(d)
	return nil
}

// applyWhole executes a command on whole namespaces, which is one small record, and reports whether it was one.
func (a *Applier) applyWhole(c replication.Command, after replication.Origin) (done bool, err error) {
	store := a.session.server.Store
	args := command.Args(c.Args)
	switch strings.ToLower(string(args[0])) {
	case "flushall":
		return true, serverside.DB.FlushWith(store, after)
	case "flushdb":
		return true, serverside.DB.FlushWith(store, after, c.Database)
	case "swapdb":
		if len(args) != 3 {
			return false, nil
		}
		first, err := args.ParseInt(1)
		if err != nil {
			return false, nil
		}
		second, err := args.ParseInt(2)
		if err != nil {
			return false, nil
		}
		if most := int64(store.Namespaces()); first < 0 || second < 0 || first >= most || second >= most {
			return true, a.differs(diverged(c.Args, c.Database, string(command.ErrDBIndex)))
		}
		return true, serverside.DB.SwapWith(store, after, int(first), int(second))
	}
	return false, nil
}

// firstLine is the first line of a reply.
func firstLine(reply []byte) string {
	line, _, _ := strings.Cut(string(reply[:min(len(reply), 1<<10)]), "\r\n")
	return line
}

// diverged is the error of a command that fails here, and did not on the master.
func diverged(args [][]byte, database int, reply string) *shared.DivergedError {
	const most, each = 8, 64
	words := make([]string, 0, most)
	for _, arg := range args[:min(len(args), most)] {
		words = append(words, fmt.Sprintf("%.*q", each, arg))
	}
	if len(args) > most {
		words = append(words, fmt.Sprintf("and %d more", len(args)-most))
	}
	return &shared.DivergedError{Name: words[0], Arguments: len(args) - 1, Command: strings.Join(words, " "), Database: database, Reply: reply}
}
