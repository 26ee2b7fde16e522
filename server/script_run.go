package server

import (
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
	"github.com/stavedb/stave/server/internal/scripts"
	"github.com/stavedb/stave/server/internal/stats"
	"github.com/stavedb/stave/server/script"
)

// A script is one transaction: what it writes becomes visible with its end, as one commit, also if it ends with an
// error, as in Redis. Its commands run in it as those of a MULTI do.
//
// The transaction begins with the first command that needs one. It locks the keys that the script declares, for
// reading, unless something says that more is needed: the words of the source that are commands that write, and what
// earlier runs have needed. If that was too little, a command that writes or a key that was not declared ends the
// attempt: what it wrote is rolled back, and the script begins again with the locks that it needs. Nobody has seen
// anything of the first attempt: messages are sent with the commit, and while MONITOR watches, scripts have all locks.
//
// An event loop runs a script itself as long as that is short: it ends the attempt with errLong when the script has
// taken loopSteps, when it calls a command that the loop does not execute, or when its commands have asked loopAsks
// times whether to go on. The session leaves the loop then and begins again, as for a lock that somebody holds. A batch
// outside of an event loop keeps its scripts as short, and executes its requests one by one if one is not.

// errRestart ends an attempt whose locks are too few.
var errRestart = errors.New("server: the script needs more locks")

// errMoreLocks ends a batch whose locks are too few for one of its scripts.
var errMoreLocks = errors.New("server: a script of the batch needs more locks")

// scriptRun is one execution of a script, in one or more attempts.
type scriptRun struct {
	scripts.Run
	session  *Session
	host     script.Host // that of all runs of the session
	needs    *atomic.Uint32
	program  *script.Program
	function *script.Function // without a program
	readOnly bool
	mayGrow  bool // also while maxmemory is exceeded
	short    bool // maxmemory was exceeded when it began

	oneSlot bool // all keys that it touches must be of one slot of the cluster
	slot    int  // of those that it has declared or touched; -1 without any

	limit int // of the replies of its commands

	declared map[string]struct{} // the keys, if they are many
	mode     scripts.LockMode    // of the attempt
	tx       *db.Tx              // nil until a command needs it
	within   bool                // tx is that of EXEC
	asked    int                 // how often its commands have asked whether to go on
	isLong   bool
	inner    command.Call // of its command
	keys     []string     // of that
}

// keepsScriptsShort reports whether a script may take little time only: others wait for the event loop, or for the locks
// of a batch.
func (s *Session) keepsScriptsShort() bool { return s.inLoop || s.inAttempt }

// Bounds of a script in an event loop or a batch, some 100 us each.
const (
	loopSteps = 4096 // instructions
	loopAsks  = 4    // times that its commands ask whether to go on: see serverside.DB.SetInterrupt
)

// manyKeys is from how many keys on they are looked up in a map.
const manyKeys = 16

// newRun returns a run of the session, for reset at its end. It is the one before, which nobody else knows any more: a
// session runs one script at a time, and a script cannot call another. needs is where the script keeps, for all
// sessions, which locks it has turned out to need.
func (s *Session) newRun(c *command.Call, needs *atomic.Uint32) *scriptRun {
	r := s.scriptRun
	if r == nil {
		r = &scriptRun{session: s}
		r.host = script.Host{Call: r.command, Log: r.log, Allowed: s.who.allows, Long: r.beLong, Context: s.host.Asking()}
		r.host.Hold, r.host.NoRoom, r.host.Taken, r.host.Wrote = r.hold, r.noRoom, r.taken, r.wrote
		s.scriptRun = r
	}
	r.Call, r.needs = c, needs
	return r
}

// reset makes a run that has ended ready for newRun. It keeps nothing of its arguments alive.
func (r *scriptRun) reset() {
	clear(r.keys[:cap(r.keys)])
	*r = scriptRun{session: r.session, host: r.host, keys: kept(r.keys)}
}

// runScript runs a script until it has had the locks that it needs. Its error is the reply, but no reason to roll
// back, not even within EXEC.
func (s *Session) runScript(r *scriptRun) error {
	c := r.Call
	s.server.scripts.Runs.Start()
	defer s.server.scripts.Runs.End()
	r.Script.Host = r.host
	r.limit = s.server.mostReply()
	if s.keepsScriptsShort() {
		r.Script.Steps = loopSteps
	}
	r.within = c.Tx != nil
	r.short = !r.mayGrow && s.server.memoryIsShort(!r.within)
	if len(r.Script.Keys) > manyKeys {
		r.declared = make(map[string]struct{}, len(r.Script.Keys))
		for _, key := range r.Script.Keys {
			r.declared[string(key)] = struct{}{}
		}
	}
	r.mode = scripts.LockMode(r.needs.Load())
	if r.within && s.keepsScriptsShort() {
		r.mode = s.locks
		before := s.interrupt
		if s.inLoop {
			before = nil
		}
		serverside.DB.SetInterrupt(c.Tx, r.interrupted)
		defer serverside.DB.SetInterrupt(c.Tx, before)
	}
	switch {
	case !s.server.hub.Monitored():
	case r.within && s.keepsScriptsShort(): // since the transaction began
		return errWouldWait
	default:
		r.mode = scripts.LockFinal
	}
	from, counted := c.Out.Len(), s.attempt.Len()
	for {
		err := r.attempt()
		if err == errRestart {
			r.needs.Store(uint32(r.mode))
			continue
		}
		if failed, ok := script.ErrorOf(err); ok {
			s.coolDown(&r.Script)
			c.Out.Truncate(from)
			s.count(stats.Call{Command: c.Command.Index, Failed: true, Refusal: string(failed)})
			c.Out.Error(string(failed))
			err = nil
		}
		if err != nil {
			s.attempt.Truncate(counted)
		}
		if !s.inAttempt {
			s.attempt.Count(&s.server.counters)
		}
		return err
	}
}

// coolDown makes the client wait after a run that was stopped or has exhausted a limit, unless the run was a short one. An
// embedded session does not wait: nobody would wake it.
func (s *Session) coolDown(r *script.Run) {
	if !s.keepsScriptsShort() && s.client.wake != nil {
		s.cooldown.Note(r.StoppedAfter)
	}
}

// count counts a call: that of a script which may have to be executed again, with the end of its attempt.
func (s *Session) count(c stats.Call) {
	if s.attempt.Note(c); !s.keepsScriptsShort() {
		s.attempt.Count(&s.server.counters)
	}
}

// attempt runs the script once. The end of the transaction is deferred, so that a panic rolls it back.
func (r *scriptRun) attempt() (err error) {
	s := r.session
	before, space := s.namespace, s.host.Store
	from := r.Call.Out.Len()
	replies := s.out.Len()
	r.tx, r.asked, r.Started = nil, 0, time.Now()
	if !r.Call.Queued {
		s.unsent = unsentMessages{}
	}
	r.Wrote.Store(false)
	if r.slot = -1; r.oneSlot && len(r.Script.Keys) > 0 {
		r.slot = cluster.SlotOf(r.Script.Keys[0])
	}
	if r.within {
		r.tx = r.Call.Tx
	}
	r.Locking.Store(r.within)
	err = errPanicked
	defer func() {
		r.Call.Out.Reserve(0)
		s.namespace, s.host.Store = before, space // SELECT in a script is for the script
		if r.isLong {
			s.server.scripts.Runs.Remove(&r.Run)
			r.isLong = false
		}
		outcome := err
		if _, failed := script.ErrorOf(err); failed {
			outcome = nil // what it wrote stays
		}
		if r.tx == nil && outcome == nil {
			s.unsent.post(&s.server.hub, s.undurable)
		}
		if !r.within {
			s.unsent.list = nil
		}
		if r.tx == nil || r.within {
			return
		}
		ticket, failed := r.tx.End(outcome)
		if failed == nil && r.mode&scripts.LockWrite != 0 {
			s.holdReplies(ticket, replies)
		}
		if failed != nil {
			r.Call.Out.Truncate(from)
			err = failed
		}
	}()
	if engine := s.server.scripts.Engine; r.program != nil {
		err = engine.Run(r.program, &r.Script, r.Call.Out)
	} else {
		err = engine.RunFunction(r.function, &r.Script, r.Call.Out)
	}
	if errors.Is(err, script.ErrSteps) || errors.Is(err, errLong) {
		err = errLong
	}
	if err == nil && r.Call.Out.Dropped() {
		err = r.errExceeded()
	}
	return err
}

// errExceeded is the error of a script whose reply is too long.
func (r *scriptRun) errExceeded() error {
	if r.Call.Out.Exceeded() {
		return errReplyTooLarge
	}
	return r.session.errShort() // also in a batch; within EXEC it is not to be repeated
}

// hold, noRoom and taken are for the memory of the run, which the session's replies take room for besides their own.
func (r *scriptRun) hold(n int) bool { return r.Call.Out.Reserve(n) }

func (r *scriptRun) noRoom(int) error { return r.errExceeded() }

func (r *scriptRun) taken() (others, most int64) {
	replies := &r.session.server.replies
	return replies.Taken() - int64(r.Call.Out.Taken()), replies.Most()
}

// beLong makes a run known to others once it has lasted some time: from then on SCRIPT KILL finds it, and commands that
// wait for its locks may reply BUSY. The engine calls it, by the goroutine that runs the script.
func (r *scriptRun) beLong(*script.Run) {
	if !r.isLong {
		r.isLong = true
		r.session.server.scripts.Runs.Add(&r.Run)
		if room := r.session.room; room != nil { // others in line do not wait for the end of the script
			r.session.server.replies.pass(room)
		}
	}
}

// The refusals of redis.call, in Redis's words.
const (
	errScriptUnknown  = "ERR Unknown Redis command called from script"
	errScriptArity    = "ERR Wrong number of args calling Redis command from script"
	errScriptRefused  = "ERR This Redis command is not allowed from script"
	errScriptReadOnly = "ERR Write commands are not allowed from read-only scripts."
)

// resolve finds the command of redis.call, and says why the script may not call it. Blocking commands on keys may be
// called though their flags forbid scripts: BLPOP and its like reply as if their time were over at once.
func (r *scriptRun) resolve(args [][]byte) (cmd *command.Command, refusal string) {
	cmd, err := table.Resolve(args)
	waits := cmd != nil && cmd.Flags&command.Blocking != 0 && len(cmd.Keys) > 0 // without an element it replies null, as within EXEC
	switch {
	case cmd == nil:
		return nil, errScriptUnknown
	case err != nil && cmd.ArityFits(len(args)):
		return nil, errScriptUnknown // a subcommand
	case err != nil:
		return nil, errScriptArity
	case cmd.Flags&(command.NoScript|command.RunsScript) != 0 && !waits, cmd.Flags&(command.NoMulti|command.RunsInsideMulti) != 0:
		return nil, errScriptRefused
	case r.readOnly && (cmd.IsWrite() || isPublish(cmd)):
		return nil, errScriptReadOnly
	}
	return cmd, ""
}

// isPublish reports whether a command publishes a message.
func isPublish(cmd *command.Command) bool { return cmd.Name == "publish" || cmd.Name == "spublish" }

// command executes a command of the script. A refusal is the reply, which redis.call raises and redis.pcall returns; an
// error ends the attempt, or the script. Each command that writes has a savepoint of its own (runInTx): one that fails
// under pcall leaves nothing, while the script goes on.
func (r *scriptRun) command(args [][]byte, out *resp.Writer) error {
	s := r.session
	cmd, refusal := r.resolve(args)
	if refusal != "" {
		s.count(stats.Call{Refusal: refusal})
		out.Error(refusal)
		return nil
	}
	refusal = s.permitInScript(cmd, args)
	if refusal == "" {
		refusal = s.server.refusesCall(cmd, args)
	}
	if refusal == "" && r.oneSlot {
		refusal = r.leavesSlot(cmd, args)
	}
	if refusal == "" && r.short && cmd.Flags&command.DenyOOM != 0 && !r.Wrote.Load() { // one that has written may finish
		refusal = string(errOutOfMemory)
	}
	if refusal != "" {
		s.count(stats.Call{Refusal: refusal})
		out.Error(refusal)
		return nil
	}
	limit := r.limit
	if s.keepsScriptsShort() {
		if !s.runsInLoop(cmd, args) {
			return errLong
		}
		limit = min(limit, s.maxReply(cmd))
	}
	r.keys = r.keys[:0]
	if err := r.lock(cmd, args); err != nil {
		return err
	}
	if cmd.IsWrite() && r.tooMuchWritten() {
		return script.ErrMemory
	}
	r.inner = command.Call{Host: &s.host, Command: cmd, Args: args, Out: out, Queued: true, Tx: r.tx}
	if len(r.keys) > 0 && cmd.StartsWithKey() {
		r.inner.FirstKey = r.keys[0]
	}
	if r.tx != nil && r.tx.Namespace() != s.namespace {
		var err error
		if r.inner.Tx, err = r.tx.Use(s.namespace); err != nil {
			return err
		}
	}
	refused, err := s.runInTx(&r.inner, limit)
	s.count(stats.Call{Command: cmd.Index, Called: true, Failed: refused != "", Refusal: refused})
	switch {
	case err != nil:
		return err
	case refused == "" && cmd.IsWrite():
		r.Wrote.Store(true)
	}
	s.feedMonitorsFrom("lua", cmd, args)
	return nil
}

// lock begins the transaction if the command needs one, or checks that it locks enough. Locks are only ever taken at
// the beginning, all at once, so that scripts cannot deadlock; too few of them end the attempt (errRestart). The mode only
// grows from attempt to attempt, and has two bits, so for lack of locks there are three attempts at most.
func (r *scriptRun) lock(cmd *command.Command, args [][]byte) error {
	s := r.session
	if len(cmd.Keys) == 0 && cmd.Flags&command.WholeKeyspace == 0 {
		return nil
	}
	var need scripts.LockMode
	if r.within && !s.keepsScriptsShort() {
		return nil // EXEC has locked everything
	}
	if cmd.Writes(args) {
		need |= scripts.LockWrite
	}
	if r.mode&scripts.LockWhole == 0 && need&scripts.LockWhole == 0 && r.leavesDeclared(cmd, args) {
		need |= scripts.LockWhole
	}
	if r.tx != nil && r.mode&need == need {
		return nil
	}
	if r.within { // a batch, whose locks are too few
		r.needs.Or(uint32(need))
		if s.inAttempt {
			return errMoreLocks
		}
		return errWouldWait
	}
	r.mode |= need
	if r.tx != nil {
		return errRestart
	}
	var keys []string
	if r.mode&scripts.LockWhole == 0 {
		for _, key := range r.Script.Keys {
			keys = append(keys, string(key))
		}
	}
	write := r.mode&scripts.LockWrite != 0 && !r.readOnly
	var tx *db.Tx
	var err error
	if s.inLoop {
		if tx, err = s.tryBegin(write, keys); err == nil {
			serverside.DB.SetInterrupt(tx, r.interrupted)
		}
	} else {
		from := time.Now()
		tx, err = s.begin(write, keys)
		r.Script.Waits(time.Since(from))
	}
	if err != nil {
		return err
	}
	r.tx = tx
	r.Locking.Store(true)
	for _, p := range s.unsent.list {
		err = errors.Join(err, postWith(tx, &s.server.hub, p))
	}
	s.unsent.list = nil
	return err
}

// interrupted is what commands of a script in an event loop ask. It counts, and looks at no clock: a script does the same
// work in the loop on a slow machine and on a fast one.
func (r *scriptRun) interrupted() error {
	if r.asked++; r.asked > loopAsks {
		return errLong
	}
	return nil
}

// leavesDeclared reports whether a command may touch a key that the script has not declared. It leaves the keys of the
// command in r.keys, which r.command uses. Without declared keys everything is undeclared. It takes O(keys of the
// command), times the declared ones while those are few.
func (r *scriptRun) leavesDeclared(cmd *command.Command, args [][]byte) bool {
	if len(r.Script.Keys) == 0 || cmd.Flags&command.WholeKeyspace != 0 || cmd.ReadsUnknownKeys(args) {
		return true
	}
	r.keys = cmd.AppendKeys(r.keys[:0], args)
	if len(r.keys) == 0 {
		return true // LMPOP 0: it will be refused, but within a transaction
	}
	for _, key := range r.keys {
		known := false
		if r.declared != nil {
			_, known = r.declared[key]
		} else {
			known = slices.ContainsFunc(r.Script.Keys, func(k []byte) bool { return string(k) == key })
		}
		if !known {
			return true
		}
	}
	return false
}

// log is redis.log. The levels of the two differ by one: what Redis calls notice is information here.
func (r *scriptRun) log(level int, message string) {
	levels := []slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}
	s := r.session
	s.server.options.Logger.Log(s.host.Context, levels[level], "script: "+message, "client", s.id)
}

// allows is redis.acl_check_cmd: whether the user may execute a command.
func (i *identity) allows(args [][]byte) (bool, error) {
	cmd, err := table.Resolve(args)
	if err != nil {
		return false, err
	}
	return i.user.Rules().Check(cmd, args).Verdict == acl.Allowed, nil
}

// whyDeniedInScript are the ends of refusals within a script, in Redis 7.0's words.
var whyDeniedInScript = map[acl.Verdict]string{
	acl.DeniedCommand: "can't run this command or subcommand",
	acl.DeniedKey:     "can't access at least one of the keys mentioned in the command arguments",
	acl.DeniedChannel: "can't publish to the channel mentioned in the command",
}

// permitInScript checks a command that a script calls: a script may do no more than its user, by the rules of this
// moment, which may have changed since it began.
func (s *Session) permitInScript(cmd *command.Command, args [][]byte) (refusal string) {
	if !s.who.user.IsLimited() {
		return ""
	}
	d := s.who.user.Rules().Check(cmd, args)
	if d.Verdict == acl.Allowed {
		return ""
	}
	s.noteDenied(d, acl.InScript, s.who.user.Name())
	return "ERR The user executing the script " + whyDeniedInScript[d.Verdict]
}
