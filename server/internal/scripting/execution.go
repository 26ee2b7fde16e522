package scripting

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/acl"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/arena"
	"github.com/stavedb/stave/server/internal/cluster"
	"github.com/stavedb/stave/server/internal/shared"
	"github.com/stavedb/stave/server/internal/stats"
	"github.com/stavedb/stave/server/script"
)

// A script is one transaction: what it writes becomes visible with its end, as one commit, also if it ends with an
// error, as in Redis. Its commands run in it as those of a MULTI do.
//
// The transaction begins with the first command that needs one. It locks the keys that the script declares, or all keys
// if an earlier run has touched others; for writing if the source names a command that writes, or an earlier run has
// written. If that was too little the run is rolled back and begins again (shared.ErrRestart), and what it lacked is known from
// then on. Nobody has seen anything of what it did: messages are sent with the commit, and while MONITOR watches, scripts
// lock everything from the start.
//
// An event loop runs a script itself, and a batch takes it among its requests, as long as it is short: it may take
// loopSteps, call commands that the loop would execute, and these may ask loopAsks times whether to go on. One that
// takes longer is rolled back and begins again on its own, where it may last (shared.ErrLong). So does, in a batch, one that
// lacks locks; the other requests of the batch go on.

// execution is one execution of a script, which may begin again.
type execution struct {
	Run
	session  *Session
	where    Where
	host     script.Host // that of all runs of the session
	known    *Known
	program  *script.Program
	function *script.Function // without a program
	readOnly bool
	mayGrow  bool  // also while maxmemory is exceeded
	shortage error // why it may add nothing, as of its beginning: maxmemory or maxdisk was exceeded

	oneSlot bool // all keys that it touches must be of one slot of the cluster
	slot    int  // of those that it has declared or touched; -1 without any

	limit int // of the replies of its commands

	declared  map[string]struct{} // the keys, if they are many
	tx        *db.Tx              // nil until a command needs it
	written   int64               // bytes that count as what it has written
	within    bool                // tx is that of EXEC or of a batch
	allLocked bool                // tx has locked all keys
	asked     int                 // how often its commands have asked whether to go on
	isLong    bool
	inner     command.Call // of its command
	keys      []string     // of that
}

// Bounds of a script in an event loop or a batch, some 100 us each.
const (
	loopSteps = 4096 // instructions
	loopAsks  = 4    // times that its commands ask whether to go on: see serverside.DB.SetInterrupt
)

// manyKeys is from how many keys on they are looked up in a map.
const manyKeys = 16

// newRun returns a run of the session, for reset at its end. It is the one before, which nobody else knows any more: a
// session runs one script at a time, and a script cannot call another.
func (s *Session) newRun(c *command.Call, known *Known) *execution {
	r := s.last
	if r == nil {
		r = &execution{session: s}
		r.host = script.Host{Call: r.command, Log: r.log, Allowed: s.allows, Long: r.beLong, Context: s.Host.Asking()}
		r.host.Hold, r.host.NoRoom, r.host.Taken, r.host.Wanted, r.host.Wrote = r.hold, r.noRoom, r.taken, r.wanted, r.wrote
		s.last = r
	}
	r.Call, r.known, r.where = c, known, s.Lent.Where()
	return r
}

// reset makes a run that has ended ready for newRun. It keeps nothing of its arguments alive.
func (r *execution) reset() {
	clear(r.keys[:cap(r.keys)])
	*r = execution{session: r.session, host: r.host, keys: arena.Kept(r.keys)}
}

// runScript runs a script until it has had the locks that it needs; in a batch it returns shared.ErrRestart instead. Its error
// is the reply, but no reason to roll back, not even within EXEC.
func (s *Session) runScript(r *execution) error {
	c := r.Call
	s.Runs.Start()
	defer s.Runs.End()
	r.Script.Host = r.host
	r.limit = s.State.MostReply()
	if r.where.isShort() {
		r.Script.Steps = loopSteps
	}
	r.within = c.Tx != nil
	if !r.mayGrow {
		r.shortage = s.State.Shortage(!r.within, !r.within && !r.where.InLoop)
	}
	if len(r.Script.Keys) > manyKeys {
		r.declared = make(map[string]struct{}, len(r.Script.Keys))
		for _, key := range r.Script.Keys {
			r.declared[string(key)] = struct{}{}
		}
	}
	if r.within && r.where.isShort() {
		if s.State.Hub.Monitored() { // since the transaction began
			return shared.ErrRestart
		}
		before := s.Host.Interrupted
		if r.where.InLoop {
			before = nil
		}
		serverside.DB.SetInterrupt(c.Tx, r.interrupted)
		defer serverside.DB.SetInterrupt(c.Tx, before)
	}
	from, counted := c.Out.Len(), s.Attempt.Len()
	err := r.attempt()
	for err == shared.ErrRestart && !r.within {
		s.Attempt.Truncate(counted)
		err = r.attempt()
	}
	if failed, ok := script.ErrorOf(err); ok {
		c.Out.Truncate(from)
		r.count(stats.Call{Command: c.Command.Index, Failed: true, Refusal: string(failed)})
		c.Out.Error(string(failed))
		err = nil
	}
	if err != nil {
		s.Attempt.Truncate(counted)
	}
	if err == shared.ErrLong {
		r.known.TookLong()
	}
	if !r.where.InBatch {
		s.Attempt.Count(&s.State.Counters)
	}
	return err
}

// count counts a call: that of a script which may have to be executed again, with the end of its attempt.
func (r *execution) count(c stats.Call) {
	s := r.session
	if s.Attempt.Note(c); !r.where.isShort() {
		s.Attempt.Count(&s.State.Counters)
	}
}

// attempt runs the script once. The end of the transaction is deferred, so that a panic rolls it back.
func (r *execution) attempt() (err error) {
	s := r.session
	space := s.Host.Store
	from := r.Call.Out.Len()
	replies := s.Out.Len()
	r.tx, r.allLocked, r.asked, r.Started = nil, false, 0, time.Now()
	if !r.Call.Queued {
		s.Unsent.Reset()
	}
	r.Wrote.Store(false)
	if r.slot = -1; r.oneSlot && len(r.Script.Keys) > 0 {
		r.slot = cluster.SlotOf(r.Script.Keys[0])
	}
	if r.within {
		r.tx, r.allLocked = r.Call.Tx, r.where.AllLocked || !r.where.InBatch // EXEC has locked all
	}
	r.Locking.Store(r.within)
	err = shared.ErrPanicked
	defer func() {
		r.Call.Out.Reserve(0)
		s.Host.Store = space // SELECT in a script is for the script
		defer r.countWritten(0)
		if r.isLong {
			s.Runs.Remove(&r.Run)
			r.isLong = false
		}
		outcome := err
		if _, failed := script.ErrorOf(err); failed {
			outcome = nil // what it wrote stays
		}
		if r.tx == nil && outcome == nil {
			s.Unsent.Post(&s.State.Hub, s.Unsynced.Ticket)
		}
		if !r.within {
			s.Unsent.Drop()
		}
		if r.tx == nil || r.within {
			return
		}
		writes := r.tx.Writable()
		ticket, failed := r.tx.End(outcome)
		if failed == nil && writes {
			s.Unsynced.Hold(ticket, replies)
		}
		if failed != nil {
			r.Call.Out.Truncate(from)
			err = failed
		}
	}()
	if engine := s.Engine; r.program != nil {
		err = engine.Run(r.program, &r.Script, r.Call.Out)
	} else {
		err = engine.RunFunction(r.function, &r.Script, r.Call.Out)
	}
	switch {
	case errors.Is(err, script.ErrSteps), errors.Is(err, shared.ErrLong):
		err = shared.ErrLong
	case errors.Is(err, shared.ErrOnDisk):
		err = shared.ErrOnDisk
	}
	if err == nil && r.Call.Out.Dropped() {
		err = r.errExceeded()
	}
	return err
}

// errExceeded is the error of a script whose reply is too long.
func (r *execution) errExceeded() error {
	if r.Call.Out.Exceeded() {
		return shared.ErrReplyTooLarge
	}
	return r.session.Lent.NoRoom() // also in a batch; within EXEC it is not to be repeated
}

// hold, noRoom, taken and wanted are for the memory of the run, which the session's replies take room for besides their own.
func (r *execution) hold(n int) bool { return r.Call.Out.Reserve(n) }

func (r *execution) noRoom(int) error { return r.errExceeded() }

func (r *execution) taken() (others, most int64) {
	replies := &r.session.State.Replies
	return replies.Taken() - int64(r.Call.Out.Taken()), replies.Most()
}

func (r *execution) wanted() bool { return r.session.State.Replies.InLine() > 0 }

// beLong makes a run known to others once it has lasted some time: from then on SCRIPT KILL finds it, and commands that
// wait for its locks may reply BUSY. The engine calls it, by the goroutine that runs the script.
func (r *execution) beLong(*script.Run) {
	if !r.isLong {
		r.isLong = true
		r.session.Runs.Add(&r.Run)
		r.session.Lent.Long()
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
func (r *execution) resolve(args [][]byte) (cmd *command.Command, refusal string) {
	cmd, err := r.session.State.Table.Resolve(args)
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
	case r.readOnly && (cmd.IsWrite() || cmd.Publishes()):
		return nil, errScriptReadOnly
	}
	return cmd, ""
}

// command executes a command of the script. A refusal is the reply, which redis.call raises and redis.pcall returns; an
// error ends the attempt, or the script. Each command that writes has a savepoint of its own: one that fails
// under pcall leaves nothing, while the script goes on.
func (r *execution) command(args [][]byte, out *resp.Writer) error {
	s := r.session
	cmd, refusal := r.resolve(args)
	if refusal != "" {
		r.count(stats.Call{Refusal: refusal})
		out.Error(refusal)
		return nil
	}
	refusal = s.permitInScript(cmd, args)
	if refusal == "" {
		refusal = refusesCall(s.State, cmd, args)
	}
	if refusal == "" && cmd.IsWrite() && s.State.Following.IsReplica() {
		refusal = string(shared.ErrReplica)
	}
	if refusal == "" && r.oneSlot {
		refusal = r.leavesSlot(cmd, args)
	}
	if refusal == "" && r.shortage != nil && cmd.Flags&command.DenyOOM != 0 && !r.Wrote.Load() { // one that has written may finish
		refusal = r.shortage.Error()
	}
	if refusal == "" && cmd.IsWrite() && !r.within && !r.Wrote.Load() && s.State.Replicas.TooFew() {
		refusal = string(shared.ErrNoReplicas)
	}
	if refusal != "" {
		r.count(stats.Call{Refusal: refusal})
		out.Error(refusal)
		return nil
	}
	limit := r.limit
	if r.where.isShort() {
		if !s.Lent.MayRunHere(cmd, args) {
			return shared.ErrLong
		}
		limit = min(limit, s.Lent.MaxReply(cmd))
	}
	r.keys = r.keys[:0]
	if err := r.lock(cmd, args); err != nil {
		return err
	}
	if cmd.IsWrite() && r.tooMuchWritten() {
		return script.ErrMemory
	}
	r.inner = command.Call{Host: s.Host, Command: cmd, Args: args, Out: out, Queued: true, Tx: r.tx}
	if len(r.keys) > 0 && cmd.StartsWithKey() {
		r.inner.FirstKey = r.keys[0]
	}
	if r.tx != nil && r.tx.Namespace() != s.Host.Store.Namespace() {
		var err error
		if r.inner.Tx, err = r.tx.Use(s.Host.Store.Namespace()); err != nil {
			return err
		}
	}
	refused, err := s.Lent.Execute(&r.inner, limit)
	r.count(stats.Call{Command: cmd.Index, Called: true, Failed: refused != "", Refusal: refused})
	switch {
	case err != nil:
		return err
	case refused == "" && cmd.IsWrite():
		r.Wrote.Store(true)
	}
	s.State.FeedMonitors(s.Host.Store.Namespace(), "lua", cmd, args)
	return nil
}

// lock begins the transaction if the command needs one, or checks that it locks enough. Locks are only ever taken at
// the beginning, all at once, so that scripts cannot deadlock; too few of them end the run (shared.ErrRestart). What it lacked
// is known then, and never forgotten, so a run begins three times at most.
func (r *execution) lock(cmd *command.Command, args [][]byte) error {
	if len(cmd.Keys) == 0 && cmd.Flags&command.WholeKeyspace == 0 {
		return nil
	}
	writes := cmd.Writes(args) && !r.readOnly
	leaves := !r.allLocked && r.leavesDeclared(cmd, args)
	if writes && !r.known.Writes.Load() {
		r.known.Writes.Store(true)
	}
	if leaves && !r.known.AllKeys.Load() {
		r.known.AllKeys.Store(true)
	}
	switch {
	case r.tx == nil:
		return r.begin()
	case leaves, writes && !r.tx.Writable():
		return shared.ErrRestart
	}
	return nil
}

// begin begins the transaction, with the locks that the script is known to need, or with all while MONITOR watches.
func (r *execution) begin() error {
	s := r.session
	monitored := s.State.Hub.Monitored()
	write := !r.readOnly && (monitored || r.known.Writes.Load())
	var keys []string
	if !monitored && !r.known.AllKeys.Load() {
		for _, key := range r.Script.Keys {
			keys = append(keys, string(key))
		}
	}
	r.allLocked = len(keys) == 0
	from := time.Now()
	tx, err := s.Lent.Begin(write, keys, r.interrupted)
	r.Script.Waits(time.Since(from))
	if err != nil {
		return err
	}
	r.tx = tx
	r.Locking.Store(true)
	return s.Unsent.With(tx, &s.State.Hub)
}

// interrupted is what commands of a script in an event loop ask. It counts, and looks at no clock: a script does the same
// work in the loop on a slow machine and on a fast one.
func (r *execution) interrupted() error {
	if r.asked++; r.asked > loopAsks {
		return shared.ErrLong
	}
	return nil
}

// leavesDeclared reports whether a command may touch a key that the script has not declared. It leaves the keys of the
// command in r.keys, which r.command uses. Without declared keys everything is undeclared. It takes O(keys of the
// command), times the declared ones while those are few.
func (r *execution) leavesDeclared(cmd *command.Command, args [][]byte) bool {
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
func (r *execution) log(level int, message string) {
	levels := []slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}
	s := r.session
	s.State.Options.Logger.Log(s.Host.Context, levels[level], "script: "+message, "client", s.Client.ID())
}

// allows is redis.acl_check_cmd: whether the user may execute a command.
func (s *Session) allows(args [][]byte) (bool, error) {
	return s.State.Allows(s.Client.User.Load(), args)
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
	if !s.Client.User.Load().IsLimited() {
		return ""
	}
	d := s.Client.User.Load().Rules().Check(cmd, args)
	if d.Verdict == acl.Allowed {
		return ""
	}
	s.State.NoteDenied(s.Client, d, acl.InScript, s.Client.User.Load().Name())
	return "ERR The user executing the script " + whyDeniedInScript[d.Verdict]
}
