package session

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/cluster"
	"github.com/stavedb/stave/server/internal/dispatch"
	"github.com/stavedb/stave/server/internal/replication"
	"github.com/stavedb/stave/server/internal/scripting"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/tracking"
)

// Session is one client's conversation: bytes in, bytes out. It is a pure state machine, with no
// goroutine and no network, and is not safe for concurrent use.
//
// A driver feeds it the bytes that arrive, sends what Output returns, and confirms with Flushed.
// While more than 1 MiB of replies wait to be sent, or some after commands that took long, the session executes nothing
// (Paused) and the driver should not read more; Flushed resumes the work. Once Closed, the driver sends the rest of
// the output and ends the connection.
//
// execute does with a request what dispatch.Decide says:
//
//	Batch             batching.add, then batching.run
//	Here              run; or after MULTI transaction.enqueue, and EXEC runs it with transaction.run
//	Later             postpone, until the end of CLIENT PAUSE
//	Aside             leave the event loop
//	Refuse, Drop      an error, or nothing
//
// One that would have to wait for other clients calls Host.Wait, and Resume ends its wait.
//
// All ways end in the output. Commits on the way are noted in unsynced, and before Feed,
// Flushed or Resume returns, unit.awaitDurable has waited for the newest of them.
type Session struct {
	server  *shared.State
	scripts *scripting.Shared
	id      int64
	parser  *resp.Parser
	out     resp.Writer
	closed  bool

	who      identity       // the user, and what it may do and take before it is known
	client   clients.Client // what others see of it
	presence presence       // whether anybody waits for the command that runs
	tracked  tracking.Reads
	replies  replyMode // what CLIENT REPLY has chosen

	host   command.Host // what handlers get of the session: the store, seen through the namespace, above all
	call   command.Call // the command being executed; reused
	unit   unit         // it, or several, in a transaction of the store
	part   batching     // its part in a batch
	multi  transaction  // MULTI and WATCH
	wait   waiting      // for other clients, or the end of a pause
	room   replyRoom    // memory for replies
	mail   mailbox      // messages
	script scripted     // what it does for its scripts
	counts counting

	owedSince   time.Time        // when the command began that has not ended; zero without one
	owedRequest uint64           // presence.request then
	begun       time.Time        // when the commands began that are executed before replies leave
	overdue     bool             // they have taken long: replies leave before more is executed
	mostReply   int              // bytes of a reply, if that is less than for others; 0: as for others
	isTLS       bool             // it is encrypted
	isRemote    bool             // it comes from another machine
	inLoop      bool             // driven by an event loop, so it must not wait for locks or the disk: see round.go
	leaving     bool             // it has met a command that is not for the loop
	follows     *replication.Ask // it is a replica's from here on: its driver feeds it, and nothing more is executed

	now dispatch.Situation // see situation

	// Method values, made once: making one allocates.
	permitFunc   func(*command.Command, [][]byte) error
	interrupt    func() error
	askRoom      func(int) error
	stopMatching func(int) bool // for structures.MatchUntil
}

// New returns a session of a server.
func New(v *shared.State, scripts *scripting.Shared) *Session {
	s := &Session{
		server:  v,
		scripts: scripts,
		id:      v.Clients.NewID(),
		parser:  resp.NewParser(v.FullLimits()),
	}
	s.tracked = tracking.NewReads(&v.Tracked, &s.client.Tracking)
	s.presence.client = &s.client
	s.who = identity{server: v, client: &s.client, parser: s.parser}
	s.host = command.Host{Store: v.Store, Databases: v.Databases(), Context: context.Background(), Wait: s.wait.start, Session: s, Encodings: &v.Encodings}
	s.host.MayReadAllKeys = s.who.mayReadAllKeys
	s.unit.runInCallTx = func(tx *db.Tx) error {
		s.call.Tx = tx
		serverside.DB.SetOrigin(tx, s.id)
		s.room.asking = &s.call
		serverside.DB.SetRoom(tx, s.askRoom)
		err := s.call.Command.Run(&s.call)
		s.out.Reserve(0)
		s.tracked.Note(&s.call)
		if err == nil {
			err = s.mail.notifyMisses(&s.call)
		}
		if err == nil && s.out.Dropped() {
			// Within the transaction, so that a command that cannot be answered is not done either.
			err = s.room.errExceeded(&s.call)
		}
		return err
	}
	// Kept, because making a method a func value allocates.
	s.unit.runCallFunc = s.unit.runCall
	s.interrupt, s.askRoom = s.interrupted, s.room.ask
	s.stopMatching = func(int) bool { return s.interrupted() != nil }
	s.host.Interrupted = s.interrupt
	s.permitFunc = s.who.permit
	s.multi.session, s.wait.session, s.room.session, s.part.session, s.mail.session = s, s, s, s, s
	s.script.session, s.unit.session, s.counts.session = s, s, s
	s.now = dispatch.Situation{State: v, Client: &s.client, Subscriber: &s.mail.subscriber, NoWrites: s.script.declaresNoWrites, Known: s.part.knowsScript}
	s.part.batch = NewBatch()
	s.client.Init()
	s.mail.init()
	s.who.setUser(v.Users.Default(), true)
	return s
}

// ID returns the number that CLIENT ID shows.
func (s *Session) ID() int64 { return s.id }

// Namespace returns the index that SELECT chose.
func (s *Session) Namespace() int { return s.host.Store.Namespace() }

// InTransaction reports whether MULTI has begun and neither EXEC nor DISCARD has ended it.
func (s *Session) InTransaction() bool { return s.multi.queue != nil }

// Feed takes bytes that arrived, in any split, executes the commands they complete, and appends the
// replies to the output. It reports whether the session is closed now.
func (s *Session) Feed(in []byte) (closed bool) {
	if s.closed {
		return true
	}
	s.parser.Feed(in)
	s.executeBuffered()
	return s.closed
}

// executeBuffered executes the bytes that were fed, until they are used up or enough replies wait.
// The deferred calls run last to first: messages are delivered, counts are added, and only then is
// the disk awaited, so that replies and messages of this round wait together and once.
func (s *Session) executeBuffered() {
	s.begun, s.part.rewound = time.Now(), false
	s.counts.since = s.begun
	s.unit.enterTerm()
	defer s.room.leave()
	defer s.release()
	defer s.unit.awaitDurable()
	defer s.counts.flush()
	defer s.mail.deliver()
	s.mail.deliver()
	for s.mayExecute() {
		args, err := s.parser.Next()
		switch {
		case args != nil || err != nil:
			s.executeNext(args, err)
		case s.part.run():
			return
		}
	}
}

// mayExecute reports whether the session may execute more of what it has been fed.
func (s *Session) mayExecute() bool {
	return !s.closed && !s.Paused() && s.wait.current == nil && !s.leaving && s.follows == nil
}

// executeNext executes what the parser has returned, or ends the session for a violation of the
// protocol.
func (s *Session) executeNext(args [][]byte, err error) {
	if err == nil {
		s.presence.request++
		before := s.out.Len()
		s.execute(args)
		if !s.who.authenticated && s.who.takesTooMuch(s.out.Len()-before) {
			s.closed = true
		}
		return
	}
	if s.part.run() && !s.closed {
		s.replyError("ERR " + err.Error())
		s.closed = true
	}
}

// Output returns the replies that wait to be sent. It is valid until the next call of a method.
func (s *Session) Output() []byte { return s.out.Bytes() }

// Flushed confirms that the first n bytes of the output have been sent, and executes what waited
// for that.
func (s *Session) Flushed(n int) {
	s.discard(n)
	s.executeBuffered()
}

// discard drops output that has been sent.
func (s *Session) discard(n int) {
	s.out.Discard(n)
	s.client.Unread.Note(s.out.Taken(), n)
	s.overdue = s.overdue && s.out.Len() > 0
}

// Closed reports whether the connection is to be ended once the output has been sent.
func (s *Session) Closed() bool { return s.closed }

// Paused reports whether the session waits for Flushed before it executes more.
func (s *Session) Paused() bool {
	return s.out.Len() >= s.server.PauseAt || s.overdue && s.out.Len() > 0
}

// Partial reports whether the client has begun a command and not finished it.
func (s *Session) Partial() bool { return s.parser.Partial() }

// Do executes one command, given as its arguments, and returns the reply in the protocol version
// that the session speaks. It must not be mixed with Feed.
func (s *Session) Do(args [][]byte) (reply []byte) { return s.DoContext(context.Background(), args) }

// DoContext is Do that gives the command up when ctx ends: one that waits, such as BLPOP, as if its time
// were over, and one that takes long with the error of ctx, without any effect.
func (s *Session) DoContext(ctx context.Context, args [][]byte) (reply []byte) {
	if len(args) == 0 || s.closed {
		return nil
	}
	s.counts.since = time.Now()
	s.unit.enterTerm()
	s.presence.request++
	s.presence.giveUp = ctx
	defer func() { s.presence.giveUp = nil }()
	s.execute(args)
	s.part.run()
	if s.wait.current != nil {
		stop := context.AfterFunc(ctx, func() { s.client.EndWait(clients.TimedOut) })
		s.Wait(s.host.Context)
		stop()
	}
	s.mail.deliver()
	s.counts.flush()
	s.unit.awaitDurable()
	s.release()
	reply = slices.Clone(s.out.Bytes())
	s.out.Discard(len(reply))
	return reply
}

// execute decides what becomes of one request, and does it.
func (s *Session) execute(args [][]byte) {
	cmd, err := s.server.Table.Resolve(args)
	if err != nil {
		s.refuse(cmd, args, err)
		return
	}
	r := dispatch.New(cmd, args)
	verdict, err := dispatch.Decide(&r, s.situation())
	s.now.Multi = nil // a queue that EXEC or DISCARD ends can be collected then
	switch verdict {
	case dispatch.Drop:
	case dispatch.Refuse:
		s.refuse(cmd, args, err)
	case dispatch.Later:
		s.postpone(cmd, args)
	case dispatch.Aside:
		s.leave(s.parser.Mark())
	case dispatch.Batch:
		s.share(&r)
	case dispatch.Here:
		s.runHere(&r)
	}
}

// share lets a request take part in the next batch, which runs first if it is full.
func (s *Session) share(r *dispatch.Request) {
	if s.part.add(r) || !s.part.run() || s.closed || s.part.add(r) {
		return
	}
	s.run(r.Command, r.Args, s.parser.Mark())
}

// runHere runs a request after those in the batch, or queues it. If the output is full after the batch, the parser has
// been rewound to this request.
func (s *Session) runHere(r *dispatch.Request) {
	switch {
	case !s.part.run() || s.closed:
	case s.multi.queue != nil && r.Command.Flags&command.RunsInsideMulti == 0:
		s.multi.enqueue(r)
	default:
		s.run(r.Command, r.Args, s.parser.Mark())
	}
}

// refuse replies to a request that is not executed, after those in the batch.
func (s *Session) refuse(cmd *command.Command, args [][]byte, err error) {
	switch {
	case !s.part.run() || s.closed:
	case command.IsHTTP(args):
		s.closeHTTP()
	default:
		s.reject(cmd, err)
	}
}

// situation is what decides, besides a request, what becomes of it.
func (s *Session) situation() *dispatch.Situation {
	now := &s.now
	now.Store, now.Multi, now.Permit, now.Watched = s.host.Store, nil, nil, 0
	if s.multi.queue != nil {
		now.Multi = &s.multi.queue.Multi
	}
	if s.who.isRestricted() {
		now.Permit = s.permitFunc
	}
	if s.multi.watch != nil {
		now.Watched = s.multi.watch.Len()
	}
	now.InLoop, now.Gone = s.inLoop, s.presence.gone
	now.Subscribed, now.Singly = s.mail.isSubscribed(), s.replies != replyOn || s.tracked.IsCaching()
	return now
}

// reject replies with an error to a request that is not executed. Within MULTI it spoils the
// transaction.
func (s *Session) reject(cmd *command.Command, err error) {
	if cmd != nil {
		s.server.Counters.Commands[cmd.Index].Rejected.Add(1)
	}
	if denied, ok := err.(*shared.DeniedError); ok {
		s.server.NoteDenied(&s.client, denied.Denial, s.multi.queue.context(), s.who.user.Name())
	}
	text := s.server.ErrorText(err)
	switch {
	case cmd != nil && cmd.Name == "exec":
		// An EXEC that is refused ends the transaction all the same, and the watch.
		s.multi.queue = nil
		s.multi.unwatch()
		if err != cluster.ErrCrossSlot {
			text = "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(text, "ERR ")
		}
	case s.multi.queue != nil:
		s.multi.queue.Aborted = true
	}
	from := s.out.Len()
	s.replyError(text)
	s.replies.apply(&s.out, cmd, from)
	s.tracked.EndCaching(cmd, s.multi.queue != nil)
}

// replyError replies with an error and counts it.
func (s *Session) replyError(text string) {
	s.server.Counters.CountError(text)
	s.out.Error(text)
}

// run executes one command outside of EXEC and counts it. mark is where the parser found it.
func (s *Session) run(cmd *command.Command, args [][]byte, mark int) {
	s.counts.of(cmd)
	from := s.out.Len()
	s.call = command.Call{Host: &s.host, Command: cmd, Args: args, Out: &s.out}
	limitReply(&s.out, cmd, from+s.room.most(cmd))
	start := time.Now()
	s.counts.since, s.presence.reads = start, cmd.OnlyReads()
	err := s.catchPanic(s.unit.runCallFunc)
	s.presence.reads = false
	if s.server.Gate != nil && owesAll(cmd) {
		s.unit.owe(nil, from)
	}
	if leavesLoop(err) {
		s.out.Truncate(from)
		s.out.SetLimit(0)
		s.call = command.Call{}
		s.leave(mark)
		return
	}
	if err == nil && s.out.Dropped() {
		err = s.room.errExceeded(&s.call)
	}
	if err == shared.ErrNoRoom {
		s.room.await(cmd, mark, from)
		s.call = command.Call{}
		return
	}
	took := time.Since(start)
	s.overdue = s.overdue || s.client.CanProbe() && start.Add(took).Sub(s.begun) >= probeEvery
	if err == shared.ErrBlocked { // it is noted when its wait is over, which is not counted
		s.wait.current.took = took
	} else {
		s.server.NoteSlow(&s.client, took, cmd, args, 0)
	}
	s.feedMonitors(cmd, args)
	s.finish(cmd, from, err)
	if err != shared.ErrBlocked {
		s.server.NoteLarge(&s.client, cmd, args, s.out.Len()-from)
	}
	s.counts.of(cmd).took += took
	s.mail.deliver()
}

// feedMonitors shows a command to the monitors; not one that shows itself when it begins.
func (s *Session) feedMonitors(cmd *command.Command, args [][]byte) {
	if cmd.Flags&command.SkipMonitor == 0 {
		s.server.FeedMonitors(s.Namespace(), s.client.Remote, cmd, args)
	}
}

// catchPanic calls run, which executes s.call. A panic is a bug of ours: it costs this connection,
// not the server. The store has rolled the transaction back and released its locks by then. The
// stack goes to the log and not to the client.
func (s *Session) catchPanic(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.server.Counters.Panics.Add(1)
			s.server.Options.Logger.Error("command panicked; connection closed",
				"command", s.call.Command.Name, "client", s.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.closed = true
			err = command.Error("ERR internal error; the connection is closed")
		}
	}()
	return run()
}

// finish replaces the reply that starts at from by an error if there was one, and counts the
// command. A command that waits is neither counted nor answered yet.
func (s *Session) finish(cmd *command.Command, from int, err error) {
	s.out.SetLimit(0)
	t := s.counts.of(cmd)
	t.calls++
	switch {
	case err == shared.ErrBlocked:
		s.out.Truncate(from)
		t.calls-- // it is counted when its wait is over
	case err == shared.ErrNoReply:
		s.out.Truncate(from)
	case err != nil:
		s.out.Truncate(from)
		s.replyError(s.server.ErrorText(err))
		t.failed++
	case cmd.Flags&command.ReadOnly != 0 && len(cmd.Keys) > 0:
		t.countRead(s.out.From(from))
	}
	if err != shared.ErrBlocked {
		s.replies.apply(&s.out, cmd, from)
		s.tracked.EndCaching(cmd, s.multi.queue != nil)
	}
	s.call = command.Call{}
}

// setNamespace makes the session work on another namespace.
func (s *Session) setNamespace(n int) error {
	space, err := s.server.Store.Use(n)
	if err != nil {
		return command.ErrDBIndex
	}
	s.host.Store = space
	return nil
}
