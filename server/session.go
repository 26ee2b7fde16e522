package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server/command"
)

// Session is one client's conversation: bytes in, bytes out. It is a pure state machine, with no
// goroutine and no network, and is not safe for concurrent use.
//
// A driver feeds it the bytes that arrive, sends what Output returns, and confirms with Flushed.
// While more than 1 MiB of replies wait to be sent the session executes nothing (Paused) and the
// driver should not read more; Flushed resumes the work. Once Closed, the driver sends the rest of
// the output and ends the connection.
//
// A request takes one of four ways through execute:
//
//	it may share a transaction with its neighbours    addToBatch, then runBatch
//	MULTI has begun                                   enqueue; EXEC runs it with runQueued
//	it would have to wait                             its handler calls Host.Wait; Resume ends it
//	anything else                                     run
//
// All ways end in the output. Commits on the way are noted with holdReplies, and before Feed,
// Flushed or Resume returns, awaitDurable has waited for the newest of them.
type Session struct {
	server *Server
	id     int64
	parser *resp.Parser
	out    resp.Writer
	closed bool

	namespace int
	host      command.Host // what handlers get of the session: the store, seen through the namespace, above all
	undurable db.Ticket    // of the newest commit that has not been waited for; 0 for none
	heldFrom  int          // where in the output the reply of the oldest such commit starts
	queue     *queue       // commands since MULTI; nil outside
	client    client       // what CLIENT LIST shows of it
	watch     *db.Watch    // keys that the next EXEC depends on; nil for none
	blocked   *blocked     // the command that waits; nil without one

	subscribed [audiences]map[string]struct{} // its subscriptions
	mail       mailbox

	call command.Call // the command being executed; reused, as are keys
	keys []string     // keys of that command

	batch       *batch // commands that are to run together
	inAttempt   bool   // a transaction of the batch is tried that has a request of this session
	attemptFrom int    // where in the output the replies of the last one start
	rewound     bool   // the parser went back to rewoundTo, for not all could be executed
	rewoundTo   int

	inLoop  bool // driven by an event loop, so it must not wait for locks or the disk: see round.go
	leaving bool // it has met a command that is not for the loop

	// Method values, made once: making one allocates.
	runInCallTx func(*db.Tx) error
	runCallFunc func() error

	statsSince time.Time // when the commands of stats began
	stats      sessionStats
}

// NewSession returns a session of its own on store, with counters that no other session shares:
// what an embedded shell or a test needs. o may be nil.
func NewSession(store *db.Store, o *Options) (*Session, error) {
	v, err := New(store, o)
	if err != nil {
		return nil, err
	}
	return v.NewSession(), nil
}

// NewSession returns a new session of this server. It is in CLIENT LIST only while Serve drives it.
func (v *Server) NewSession() *Session {
	s := &Session{
		server: v,
		id:     v.nextID.Add(1),
		parser: resp.NewParser(resp.Limits{Bulk: v.options.MaxArgument}),
	}
	s.host = command.Host{Store: v.store, Databases: v.databases(), Context: context.Background(), Wait: s.startWait, Session: s}
	s.runInCallTx = func(tx *db.Tx) error {
		s.call.Tx = tx
		err := s.call.Command.Run(&s.call)
		if err == nil {
			err = s.notifyMisses(&s.call)
		}
		if err == nil && s.out.Exceeded() {
			// Within the transaction, so that a command that cannot be answered is not done either.
			err = errReplyTooLarge
		}
		return err
	}
	s.namespace = v.store.Namespace()
	// Kept, because making a method a func value allocates.
	s.runCallFunc = s.runCall
	s.batch = newBatch()
	s.client.init()
	return s
}

// ID returns the number that CLIENT ID shows.
func (s *Session) ID() int64 { return s.id }

// Namespace returns the index that SELECT chose.
func (s *Session) Namespace() int { return s.namespace }

// InTransaction reports whether MULTI has begun and neither EXEC nor DISCARD has ended it.
func (s *Session) InTransaction() bool { return s.queue != nil }

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
	s.statsSince = time.Now()
	defer s.awaitDurable()
	defer s.flushStats()
	defer s.deliverMessages()
	s.deliverMessages()
	for s.mayExecute() {
		args, err := s.parser.Next()
		switch {
		case args != nil || err != nil:
			s.executeNext(args, err)
		case s.runBatch():
			return
		}
	}
}

// mayExecute reports whether the session may execute more of what it has been fed.
func (s *Session) mayExecute() bool {
	return !s.closed && !s.Paused() && s.blocked == nil && !s.leaving
}

// executeNext executes what the parser has returned, or ends the session for a violation of the
// protocol.
func (s *Session) executeNext(args [][]byte, err error) {
	if err == nil {
		s.execute(args)
		return
	}
	if s.runBatch() && !s.closed {
		s.replyError("ERR " + err.Error())
		s.closed = true
	}
}

// Output returns the replies that wait to be sent. It is valid until the next call of a method.
func (s *Session) Output() []byte { return s.out.Bytes() }

// Flushed confirms that the first n bytes of the output have been sent, and executes what waited
// for that.
func (s *Session) Flushed(n int) {
	s.out.Discard(n)
	s.executeBuffered()
}

// Closed reports whether the connection is to be ended once the output has been sent.
func (s *Session) Closed() bool { return s.closed }

// Paused reports whether the session waits for Flushed before it executes more.
func (s *Session) Paused() bool { return s.out.Len() >= s.server.pauseAt }

// Partial reports whether the client has begun a command and not finished it.
func (s *Session) Partial() bool { return s.parser.Partial() }

// Held returns the memory of the session's buffers in bytes. The sum over all sessions is what
// Options.ClientMemory bounds.
func (s *Session) Held() int {
	n := s.parser.Held() + s.out.Held() + s.mail.held()
	if s.queue != nil {
		n += s.queue.bytes
	}
	return n
}

// Do executes one command, given as its arguments, and returns the reply in the protocol version
// that the session speaks. It must not be mixed with Feed.
func (s *Session) Do(args [][]byte) (reply []byte) { return s.DoContext(context.Background(), args) }

// DoContext is Do that gives up a command that waits, such as BLPOP, when ctx ends, as if its time
// were over.
func (s *Session) DoContext(ctx context.Context, args [][]byte) (reply []byte) {
	if len(args) == 0 || s.closed {
		return nil
	}
	s.statsSince = time.Now()
	s.execute(args)
	s.runBatch()
	if s.blocked != nil {
		stop := context.AfterFunc(ctx, func() { s.client.endWaitOf(timedOut) })
		s.Wait(s.host.Context)
		stop()
	}
	s.deliverMessages()
	s.flushStats()
	s.awaitDurable()
	reply = slices.Clone(s.out.Bytes())
	s.out.Discard(len(reply))
	return reply
}

// execute checks one request and runs it, or lets it wait for others of its pipeline, or for EXEC.
func (s *Session) execute(args [][]byte) {
	cmd, err := table.Resolve(args)
	if err == nil && s.queue != nil && cmd.Flags&command.NoMulti != 0 {
		err = errInMulti
	}
	if err == nil && cmd.Flags&command.WhileSubscribed == 0 && s.inSubscribedMode() {
		err = errSubscribedMode(cmd.Name)
	}
	if err == nil && s.queue == nil && s.addToBatch(cmd, args) {
		return
	}
	if err == nil && s.inLoop && !s.staysInLoop(cmd, args) {
		s.leave(s.parser.Mark())
		return
	}
	// Everything else runs after the batch. If the output is full, the parser has been rewound to
	// this request.
	if !s.runBatch() || s.closed {
		return
	}
	if err != nil {
		s.reject(cmd, err)
		return
	}
	if s.queue != nil && cmd.Flags&command.RunsInsideMulti == 0 {
		s.enqueue(cmd, args)
		return
	}
	if s.queue != nil || !s.addToBatch(cmd, args) {
		s.run(cmd, args, s.parser.Mark())
	}
}

// reject replies with an error to a request that is not executed. Within MULTI it spoils the
// transaction.
func (s *Session) reject(cmd *command.Command, err error) {
	if cmd != nil {
		s.server.commands[cmd.Index].rejected.Add(1)
	}
	text := errorText(err)
	switch {
	case cmd != nil && cmd.Name == "exec":
		// An EXEC that is refused ends the transaction all the same, and the watch.
		s.queue = nil
		s.unwatch()
		text = "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(text, "ERR ")
	case s.queue != nil:
		s.queue.aborted = true
	}
	s.replyError(text)
}

// replyError replies with an error and counts it.
func (s *Session) replyError(text string) {
	s.server.countError(text)
	s.out.Error(text)
}

// run executes one command outside of EXEC and counts it. mark is where the parser found it.
func (s *Session) run(cmd *command.Command, args [][]byte, mark int) {
	s.statsFor(cmd)
	from := s.out.Len()
	s.call = command.Call{Host: &s.host, Command: cmd, Args: args, Out: &s.out}
	s.out.SetLimit(from + s.server.options.MaxReply)
	start := s.server.startTimer()
	err := s.catchPanic(s.runCallFunc)
	if err == errWouldWait {
		s.out.Truncate(from)
		s.out.SetLimit(0)
		s.call = command.Call{}
		s.leave(mark)
		return
	}
	if err == nil && s.out.Exceeded() {
		err = errReplyTooLarge
	}
	s.noteSlow(start, cmd, args, 0)
	s.feedMonitors(cmd, args)
	s.finish(cmd, from, err)
	s.deliverMessages()
}

// catchPanic calls run, which executes s.call. A panic is a bug of ours: it costs this connection,
// not the server. The store has rolled the transaction back and released its locks by then. The
// stack goes to the log and not to the client.
func (s *Session) catchPanic(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.server.counters.panics.Add(1)
			s.server.options.Logger.Error("command panicked; connection closed",
				"command", s.call.Command.Name, "client", s.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.closed = true
			err = command.Error("ERR internal error; the connection is closed")
		}
	}()
	return run()
}

// errNoReply ends a command that must not be answered.
var errNoReply = errors.New("no reply")

// finish replaces the reply that starts at from by an error if there was one, and counts the
// command. A command that waits is neither counted nor answered yet.
func (s *Session) finish(cmd *command.Command, from int, err error) {
	s.out.SetLimit(0)
	t := s.statsFor(cmd)
	t.calls++
	switch {
	case err == errBlocked:
		s.out.Truncate(from)
		t.calls-- // it is counted when its wait is over
	case err == errNoReply:
		s.out.Truncate(from)
	case err != nil:
		s.out.Truncate(from)
		s.replyError(errorText(err))
		t.failed++
	case cmd.Flags&command.ReadOnly != 0 && len(cmd.Keys) > 0:
		t.countRead(s.out.Bytes()[from:])
	}
	s.call = command.Call{}
}

// setNamespace makes the session work on another namespace.
func (s *Session) setNamespace(n int) error {
	space, err := s.server.store.Use(n)
	if err != nil {
		return command.ErrDBIndex
	}
	s.host.Store, s.namespace = space, n
	return nil
}
