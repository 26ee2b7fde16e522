package session

import (
	"errors"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
	"github.com/stavedb/stave/server/internal/gate"
	"github.com/stavedb/stave/server/internal/shared"
)

// Here a command meets the store. Three things happen in this order and must not be mixed up: the
// commit, which makes writes visible to others; the release of the locks; and the wait for the
// disk, which is the session's and not the command's. Between the first and the last another client
// may read what a power cut could still take away. It gets its reply only after a wait of its own,
// for the same sync or a later one.

// unit is one unit of the store: a command, or several.
type unit struct {
	session     *Session
	keys        []string        // of the command that is executed; reused
	unsynced    shared.Unsynced // commits that have not been waited for
	runInCallTx func(*db.Tx) error
	runCallFunc func() error
}

// runCall runs the command of s.call: if it names keys, as one atomic unit of the store over them.
// Their locks are held, and no others, until the commit. Inside the unit the handler finds the
// transaction in call.Tx.
func (u *unit) runCall() error {
	s := u.session
	cmd, args := s.call.Command, s.call.Args
	if len(cmd.Keys) == 0 || cmd.Flags&command.RunsScript != 0 {
		return cmd.Run(&s.call)
	}
	u.keys = cmd.AppendKeys(u.keys[:0], args)
	if cmd.ReadsUnknownKeys(args) {
		return u.transact(cmd.Writes(args), nil, u.runInCallTx)
	}
	if cmd.StartsWithKey() && len(u.keys) > 0 {
		s.call.FirstKey = u.keys[0]
	}
	from := s.out.Len()
	err := u.transact(cmd.Writes(args), u.keys, u.runInCallTx)
	if err != nil && cmd.SavesCount(args) && !command.IsRefusal(err) && !leavesLoop(err) {
		s.out.Truncate(from) // what could not be saved can be read
		err = u.transact(false, u.keys, u.runInCallTx)
	}
	return err
}

// begin begins a transaction over keys, or over the whole store if there are none. A session in an
// event loop does not wait for locks: see shared.ErrWouldWait.
func (u *unit) begin(write bool, keys []string) (tx *db.Tx, err error) {
	s := u.session
	if write {
		s.presence.writesFor = s.presence.request
	}
	if !s.inLoop {
		if s.scripts.Runs.Any() { // also one that is short so far: it may hold the locks for long
			tx, err = s.scripts.BeginAlongside(s.host.Store, write, keys, s.call.Command != nil && s.call.Command.Flags&command.RunsScript != 0, s.interrupt)
		} else {
			tx, err = s.host.Store.Begin(write, keys...)
		}
		if err == nil {
			serverside.DB.SetInterrupt(tx, s.interrupt)
			serverside.DB.SetRollsBack(tx) // see transact and runOne
		}
		return tx, err
	}
	if len(keys) == 0 {
		return nil, shared.ErrWouldWait
	}
	return u.tryBegin(write, keys)
}

// tryBegin begins a transaction over keys, or over the whole store if there are none, without waiting. A command that has to
// read from the disk leaves the loop: outside of it the reads of many clients go on together.
func (u *unit) tryBegin(write bool, keys []string) (*db.Tx, error) {
	s := u.session
	tx, ok, err := serverside.DB.TryBegin(s.host.Store, write, shared.ErrOnDisk, keys...)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, shared.ErrWouldWait
	}
	serverside.DB.SetRollsBack(tx)
	return tx, nil
}

// transact runs fn in a transaction over keys, or over the whole store if there are none. It
// commits and does not wait for the disk: awaitDurable does, once for all commands whose replies
// leave together. tx.End commits if err is nil and rolls back otherwise. It is deferred, with err
// set to shared.ErrPanicked, so that a panic in fn rolls back and releases the locks before it travels on
// to catchPanic.
func (u *unit) transact(write bool, keys []string, fn func(*db.Tx) error) (err error) {
	s := u.session
	before := s.out.Len()
	tx, err := u.begin(write, keys)
	if err != nil {
		return err
	}
	err = shared.ErrPanicked
	defer func() {
		waits := err == shared.ErrBlocked
		if waits {
			err = nil // what has been done before the wait, such as the consumer that XREADGROUP makes, stays
		}
		ticket, failed := tx.End(err)
		if write && failed == nil {
			u.unsynced.Hold(ticket, before)
		}
		u.owe(keys, before)
		if err = failed; waits && (failed == nil || !s.wait.abandon()) {
			err = shared.ErrBlocked
		}
	}()
	err = fn(tx)
	return err
}

// runOne runs one of several commands of a unit. A refusal becomes the command's reply, which the caller counts: the
// command's writes are rolled back, and the unit continues. An error is a failure of the store, which ends the unit, or
// shared.ErrLong. limit is how long the output may become. A reply that is too large is a refusal too. The savepoint is taken
// for what writes or publishes: a read has nothing to roll back. The hooks of keymiss run before the decision, since
// they may fail.
func (u *unit) runOne(c *command.Call, limit int) (refusal string, err error) {
	s := u.session
	from := c.Out.Len()
	limitReply(c.Out, c.Command, limit)
	var mark db.Savepoint
	write := c.Command.Writes(c.Args) || c.Tx != nil && (c.Command.Flags&command.RunsScript != 0 || c.Command.Publishes())
	if write {
		mark = c.Tx.Savepoint()
	}
	if c.Tx != nil {
		serverside.DB.SetOrigin(c.Tx, s.id)
		s.room.asking = c
		serverside.DB.SetRoom(c.Tx, s.askRoom)
	}
	err = c.Command.Run(c)
	c.Out.Reserve(0)
	s.tracked.Note(c)
	if err == nil && c.Out.Dropped() {
		err = s.room.errExceeded(c)
	}
	if err == nil { // last, because a read that is given up and repeated has no savepoint that takes it back
		err = s.mail.notifyMisses(c)
	}
	again := isLong(err) || err == shared.ErrNoRoom || err == shared.ErrRestart // it is executed again: nothing of it may stay
	if err == nil || !again && !command.IsRefusal(err) {
		return "", err
	}
	if write {
		if err := c.Tx.RollbackTo(mark); err != nil {
			return "", err // what the command wrote must not be committed with the unit
		}
	}
	if again {
		return "", err
	}
	c.Out.Truncate(from)
	c.Out.SetLimit(limit) // what was too long is no matter of the whole unit
	refusal = s.server.ErrorText(err)
	c.Out.Error(refusal)
	return refusal, nil
}

// enterTerm notes in which term of the gate the session executes what it has got.
func (u *unit) enterTerm() {
	if g := u.session.server.Gate; g != nil && u.unsynced.Ticket == 0 {
		u.unsynced.Term = g.Term()
	}
}

// owe notes that the reply which starts at from may show what the store has, by now, of keys, or of all without any, even if it is an
// error: of a member of a group it must not leave before that is confirmed.
func (u *unit) owe(keys []string, from int) {
	v := u.session.server
	if v.Member != nil && v.Member.IsStrict() {
		u.unsynced.Round = v.Replicas.Stream.Position().Offset + 1
	}
	switch g := v.Gate; {
	case g == nil:
	case len(keys) == 0:
		u.unsynced.Hold(db.Ticket(g.Newest()), from)
	default:
		u.unsynced.Hold(db.Ticket(g.Owed(keys)), from)
	}
}

// owesAll reports whether a command may show what the store has of any key, and names none. Figures such as INFO's are not among that,
// nor what an operator asks for: that answers also while nothing is confirmed.
func owesAll(cmd *command.Command) bool {
	return cmd.Flags&command.RunsScript != 0 || cmd.Group == command.GroupScripting || cluster.LooksAtKeys(cmd) ||
		len(cmd.Keys) == 0 && cmd.Flags&(command.ReadOnly|command.Write|command.WholeKeyspace) != 0
}

// awaitDurable waits until the commits of the commands are as durable as the store's sync mode
// promises, and the gate of a group shows them: until then no reply may leave. If that fails the
// replies are withdrawn, and the connection ends, for its client could not tell which of its
// commands the error is about. Without a group there is nothing to wait for with SyncInterval and
// SyncNone.
func (u *unit) awaitDurable() {
	s := u.session
	if u.unsynced.Ticket != 0 {
		s.server.AskRound(u.unsynced.Round)
		u.endDurable(u.unsynced.Outcome(s.server, s.server.WaitDurable(u.unsynced.Ticket, u.unsynced.Round)))
	}
}

// endDurable is what follows the wait.
func (u *unit) endDurable(err error) {
	s := u.session
	u.unsynced.Ticket = 0
	if err == nil {
		return
	}
	s.out.Truncate(u.unsynced.From)
	s.replyError(s.server.ErrorText(err))
	s.closed = true
	if errors.Is(err, gate.ErrUnknown) { // of all clients at once, at each switch of the primary
		s.server.Options.Logger.Debug("the group has not confirmed what replies show; connection closed", "client", s.id)
		return
	}
	s.server.Options.Logger.Error("writes could not be made durable; connection closed", "client", s.id, "error", err)
}
