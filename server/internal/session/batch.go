package session

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/arena"
	"github.com/stavedb/stave/server/internal/dispatch"
	"github.com/stavedb/stave/server/internal/scripting"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/stats"
)

// A client that pipelines a hundred SETs sends them in one packet. One by one they would take a
// hundred sets of locks and a hundred writes to the log; as a batch they take one of each. Only
// what has arrived is batched: nothing waits for more to come, so a lone command is as fast as
// without batches.
//
// A batch is one commit. A crash keeps all of its writes or none, which a client cannot tell from a
// crash a moment earlier or later, since none of its commands had been answered.

// Batch is a run of commands that have arrived together and are executed as one unit of the store:
// one set of locks and one write to the log for all of them, which is what a write costs most. No
// reply leaves before all are committed, so a client cannot tell, except by the speed; each command
// still fails alone. Only quick commands on keys and short scripts are batched, so that no other client
// waits long for the locks.
//
// A session has a batch of its own for its pipelines. The sessions of an event loop share one, for
// all commands that are ready together.
type Batch struct {
	requests  []request
	args      [][]byte // backs the requests' arguments, whose bytes stay in the parsers' buffers
	keys      []string // of all requests
	bytes     int      // of all arguments
	writes    bool     // a request may write
	saves     bool     // a request may save what it has counted
	whole     bool     // a script among them uses keys that it does not declare
	mixed     bool     // there are requests of several sessions
	singly    bool     // the rest is executed one by one: together it has failed
	namespace int      // of all requests
	done      int      // requests that have been executed or postponed

	apart        *Batch // for the requests of one session of a mixed batch that has failed
	transactFunc func() error
}

// batching is the part that a session has in a batch.
type batching struct {
	session     *Session
	batch       *Batch           // commands that are to run together
	known       *scripting.Known // of the script that knowsScript was asked about last
	inAttempt   bool             // a transaction of the batch is tried that has a request of this session
	allLocked   bool             // it has locked all keys
	attempt     stats.Attempt    // what scripts that may have to be executed again have called
	attemptFrom int              // where in the output the replies of the last one start
	rewound     bool             // the parser went back to rewoundTo, for not all could be executed
	rewoundTo   int
}

// request is one command of a batch.
type request struct {
	session    *Session // whose it is
	command    *command.Command
	args       [][]byte
	firstKey   string           // see command.Call.FirstKey
	parserMark int              // where the parser found it
	script     *scripting.Known // of a script
	postponed  bool             // it was not executed: see batching.postpones
	alone      bool             // a script that was rolled back, and is executed after the transaction
	outcome    outcome
	reply      int // bytes
}

// outcome is how a request of a batch has ended. It is counted when the transaction has been
// committed: until then the request may be executed again.
type outcome struct {
	failed    bool
	refusal   string // the error that was replied; empty for none
	hit, miss bool   // of a read
}

// NewBatch returns an empty batch, for the sessions of an event loop.
func NewBatch() *Batch {
	b := new(Batch)
	b.transactFunc = b.transact // kept, because making a method a func value allocates
	return b
}

// add puts a request that may share a transaction into the batch, if there is room in it. It copies the
// slice headers of the arguments, not their bytes: those stay in the parser's buffer until the
// batch has run.
func (p *batching) add(r *dispatch.Request) bool {
	s := p.session
	b := p.batch
	if len(b.requests) == dispatch.MaxBatch || b.bytes+r.Size > dispatch.MaxBatchBytes || len(b.requests) > 0 && b.namespace != s.Namespace() {
		return false
	}
	from := len(b.args)
	b.args = append(b.args, r.Args...)
	own := request{session: s, command: r.Command, args: b.args[from:len(b.args):len(b.args)], parserMark: s.parser.Mark()}
	if r.Command.Flags&command.RunsScript != 0 {
		own.script = p.known
	}
	b.add(own)
	b.bytes += r.Size
	return true
}

// sizeOf is the length of all arguments.
func sizeOf(args [][]byte) (size int) {
	for _, arg := range args {
		size += len(arg)
	}
	return size
}

// sizeOfTexts is the length of all texts.
func sizeOfTexts(texts []string) (size int) {
	for _, text := range texts {
		size += len(text)
	}
	return size
}

// add adds a request and its keys.
func (b *Batch) add(r request) {
	firstKey := len(b.keys)
	b.keys = r.command.AppendKeys(b.keys, r.args)
	if r.command.StartsWithKey() && len(b.keys) > firstKey {
		r.firstKey = b.keys[firstKey]
	}
	b.requests = append(b.requests, r)
	b.writes = b.writes || r.command.IsWrite() || r.script != nil && r.script.Writes.Load()
	b.whole = b.whole || r.script != nil && r.script.AllKeys.Load()
	b.saves = b.saves || r.command.SavesCount(r.args)
	b.mixed = b.mixed || b.requests[0].session != r.session
	b.namespace = r.session.Namespace()
}

// run executes the batch, and reports whether all of the session's requests were executed. If
// enough replies wait for the client before that, the parser goes back to the first request that was
// not executed.
func (p *batching) run() bool {
	p.batch.Run()
	complete := !p.rewound
	p.rewound = false
	return complete
}

// Run executes the requests, in one transaction unless others must be served in between. A single
// request runs as a command of its own, without a savepoint. The slices are cleared, so that a batch
// keeps no argument alive after it, and used again.
func (b *Batch) Run() {
	for b.done = 0; b.done < len(b.requests); {
		rest := b.requests[b.done:]
		if len(rest) > 1 && !b.singly && !rest[0].alone {
			b.runTogether()
			continue
		}
		b.done++
		if r := &rest[0]; !r.session.part.postpones(r) {
			r.session.run(r.command, r.args, r.parserMark)
		}
	}
	if len(b.requests) == 0 {
		return
	}
	clear(b.requests)
	clear(b.args)
	clear(b.keys)
	b.requests, b.args, b.keys, b.bytes = b.requests[:0], arena.Kept(b.args), arena.Kept(b.keys), 0
	b.writes, b.saves, b.whole, b.mixed, b.singly = false, false, false, false, false
}

// runTogether executes requests in one transaction.
func (b *Batch) runTogether() {
	from, lead := b.done, b.requests[b.done].session
	start := time.Now()
	var err error
	if b.mixed {
		err = b.transactMixed()
	} else {
		err = lead.catchPanic(b.transactFunc)
	}
	for i := range b.requests[from:] {
		b.requests[from+i].session.part.inAttempt = false
	}
	if err != nil {
		b.undo(from)
		switch wouldWait := errors.Is(err, shared.ErrWouldWait); {
		case b.saves && !b.writes && !lead.closed && !wouldWait:
			b.saves = false // without that it needs no write
			return
		case b.mixed:
			b.runApart(from)
			return
		case wouldWait && lead.inLoop:
			lead.leave(b.requests[from].parserMark)
			b.done = len(b.requests)
			b.end(from)
			return
		case !lead.closed && !command.IsRefusal(err): // of one of them, perhaps
			b.singly = true
			return
		default:
			lead.part.fail(b.requests[from:], err)
			b.done = len(b.requests)
		}
	}
	b.noteExecuted(from, start)
}

// noteExecuted counts and reports the requests of a transaction, and ends their calls.
func (b *Batch) noteExecuted(from int, start time.Time) {
	took := time.Since(start)
	var first *request
	executed := 0
	for i := from; i < b.done; i++ {
		if r := &b.requests[i]; !r.postponed {
			executed++
			if first == nil {
				first = r
			}
		}
	}
	for i := from; i < b.done; i++ {
		if r := &b.requests[i]; !r.postponed {
			r.session.part.attempt.Count(&r.session.server.Counters)
			r.session.counts.of(r.command).countRequest(r, took/time.Duration(executed), &r.session.server.Counters)
			r.session.feedMonitors(r.command, r.args)
			r.session.server.NoteLarge(&r.session.client, r.command, r.args, r.reply)
		}
	}
	b.end(from)
	if first != nil {
		first.session.server.NoteSlow(&first.session.client, took, first.command, first.args, executed-1)
	}
}

// end ends the calls of requests that have been executed, or left.
func (b *Batch) end(from int) {
	for i := from; i < b.done; i++ {
		s := b.requests[i].session
		s.out.SetLimit(0)
		s.call = command.Call{}
	}
}

// transactMixed is transact for requests of several sessions. A panic is reported by whoever repeats
// it when each session's requests are executed apart.
func (b *Batch) transactMixed() (err error) {
	defer func() {
		if p := recover(); p != nil {
			logger := b.requests[0].session.server.Options.Logger
			logger.Warn("a command panicked; executing those of each client apart", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = shared.ErrPanicked
		}
	}()
	return b.transact()
}

// transact is one transaction. After an error nothing of it has happened but what the outputs say.
func (b *Batch) transact() (err error) {
	from, lead := b.done, b.requests[b.done].session
	for i := range b.requests[from:] {
		if s := b.requests[from+i].session; !s.part.inAttempt {
			s.part.inAttempt, s.part.attemptFrom = true, s.out.Len()
		}
	}
	var tx *db.Tx
	switch write := b.writes || b.saves; {
	case !b.whole:
		tx, err = lead.unit.begin(write, b.keys)
	case lead.inLoop:
		tx, err = lead.unit.tryBegin(write, nil)
	default:
		tx, err = lead.unit.begin(write, nil)
	}
	if err != nil {
		return err
	}
	err = shared.ErrPanicked
	defer func() {
		ticket, failed := tx.End(err)
		if b.writes && failed == nil {
			b.holdReplies(from, ticket)
		}
		if lead.server.Gate != nil && failed == nil {
			b.owe(from)
		}
		err = failed
	}()
	serverside.DB.Prefetch(tx)
	err = b.runInTx(tx)
	return err
}

// holdReplies notes the commit for each session that may have written something in it.
func (b *Batch) holdReplies(from int, ticket db.Ticket) {
	for i := from; i < b.done; i++ {
		if r := &b.requests[i]; r.command.Flags&(command.Write|command.RunsScript) != 0 && !r.postponed {
			r.session.unit.unsynced.Hold(ticket, r.session.part.attemptFrom)
		}
	}
}

// owe is unit.owe for each request, by its own keys. A script may have used those of the others.
func (b *Batch) owe(from int) {
	for i := from; i < b.done; i++ {
		r := &b.requests[i]
		keys := r.command.AppendKeys(nil, r.args)
		switch {
		case r.postponed:
			continue
		case b.whole:
			keys = nil
		case r.script != nil:
			keys = b.keys
		}
		r.session.unit.owe(keys, r.session.part.attemptFrom)
	}
}

// runInTx executes the requests in a transaction, until others must be served. A request that is
// refused is rolled back to its own savepoint, and the batch continues.
func (b *Batch) runInTx(tx *db.Tx) error {
	for b.done < len(b.requests) {
		r := &b.requests[b.done]
		handedOver := true
		if !r.session.part.postpones(r) {
			var err error
			r.session.part.allLocked = b.whole
			if handedOver, err = r.run(tx); err != nil {
				return err
			}
			if r.alone {
				break
			}
		}
		b.done++
		if !handedOver {
			break
		}
	}
	return nil
}

// run executes one request of a batch. handedOver is false if the transaction must end for those
// who wait for what the request has written.
func (r *request) run(tx *db.Tx) (handedOver bool, err error) {
	s := r.session
	from := s.out.Len()
	s.call = command.Call{Host: &s.host, Command: r.command, Args: r.args, FirstKey: r.firstKey, Tx: tx, Out: &s.out}
	refusal, err := s.unit.runOne(&s.call, from+s.room.most(r.command))
	r.reply = s.out.Len() - from
	switch {
	case err == shared.ErrNoRoom:
		s.room.await(r.command, r.parserMark, from)
		r.postponed = true
	case (isLong(err) || err == shared.ErrRestart) && s.inLoop:
		s.out.Truncate(from)
		s.leave(r.parserMark)
		r.postponed = true
	case err == shared.ErrLong, err == shared.ErrRestart:
		s.out.Truncate(from)
		s.out.SetLimit(0)
		r.alone = true
	case err != nil:
		return false, err
	case refusal != "":
		r.outcome = outcome{failed: true, refusal: refusal}
	case r.command.Flags&command.ReadOnly != 0:
		r.outcome.hit, r.outcome.miss = readOutcome(s.out.From(from))
	default:
		// Who waits comes before the next command, as if each were alone: if need be by ending
		// the transaction here.
		return serverside.DB.ServeWaiters(tx), nil
	}
	return true, nil
}

// postpones reports whether a request is left to the parser, which returns it again: enough replies
// wait for the client, or a request before this was left. A closed session executes nothing more.
func (p *batching) postpones(r *request) bool {
	s := p.session
	switch {
	case s.closed:
	case p.rewound && r.parserMark >= p.rewoundTo:
	case s.Paused():
		p.rewind(r.parserMark)
	default:
		return false
	}
	r.postponed = true
	return true
}

// rewind makes the parser return a request again, and those after it.
func (p *batching) rewind(mark int) {
	s := p.session
	s.parser.Rewind(mark)
	p.rewound, p.rewoundTo = true, mark
}

// undo takes the replies of a transaction back that has failed.
func (b *Batch) undo(from int) {
	for i := range b.requests[from:] {
		r := &b.requests[from+i]
		s := r.session
		s.call = command.Call{}
		s.part.attempt.Truncate(0)
		s.out.Truncate(s.part.attemptFrom)
		s.out.SetLimit(0)
		r.postponed, r.outcome = false, outcome{}
	}
	b.done = from
}

// runApart executes the requests of each session in a transaction of its own, after one for all of
// them could not begin, or has failed: what is wrong with one concerns no other.
func (b *Batch) runApart(from int) {
	if b.apart == nil {
		b.apart = NewBatch()
	}
	requests := b.requests[from:]
	for i := range requests {
		s := requests[i].session
		if s == nil {
			continue
		}
		for j := i; j < len(requests); j++ {
			if requests[j].session == s {
				b.apart.add(requests[j])
				requests[j].session = nil
			}
		}
		b.apart.Run()
	}
	b.done = len(b.requests)
}

// fail answers commands that are refused together, or that panicked, with the error.
func (p *batching) fail(requests []request, err error) {
	s := p.session
	text := s.server.ErrorText(err)
	for i := range requests {
		if p.rewound && requests[i].parserMark >= p.rewoundTo {
			requests[i].postponed = true // it is executed again
			continue
		}
		if s.closed && i > 0 { // after a panic: one error is enough for a client that is disconnected
			requests[i].postponed = true
			continue
		}
		requests[i].outcome.failed = true
		s.replyError(text)
	}
}
