package dispatch

import (
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/clients"
	"github.com/stavedb/stave/server/internal/pubsub"
	"github.com/stavedb/stave/server/internal/shared"
)

// Request is a request that a session has been sent.
type Request struct {
	Command *command.Command
	Args    [][]byte
	Cost    command.Cost
	Size    int // of all arguments, in bytes
}

// New is a request of a command that has been resolved.
func New(cmd *command.Command, args [][]byte) Request {
	r := Request{Command: cmd, Args: args, Cost: cmd.CostOf(args)}
	for _, arg := range args {
		r.Size += len(arg)
	}
	return r
}

// Situation is what a decision depends on besides the request.
type Situation struct {
	State *shared.State
	Store *db.Store // of the session's namespace

	Client     *clients.Client                                // of the session
	Multi      *Multi                                         // what MULTI has gathered; nil outside of it
	Permit     func(*command.Command, [][]byte) error         // nil: the user may do everything
	NoWrites   func(*command.Command, [][]byte) bool          // whether EVAL or FCALL is of a script that says it writes nothing
	Known      func(cmd *command.Command, args [][]byte) bool // whether EVAL is of a script that may share a transaction
	Watched    int                                            // keys that the next EXEC depends on
	Subscriber *pubsub.Subscriber                             // of the session
	InLoop     bool                                           // other clients wait for the end of what runs here
	Gone       bool                                           // the client has left
	Subscribed bool                                           // only what a subscriber may send is allowed
	Singly     bool                                           // each reply is dropped or noted by itself
	Driven     bool                                           // there is somebody who would wake the session
}

// Verdict is what becomes of a request.
type Verdict uint8

const (
	Refuse Verdict = iota // the error is the reply
	Drop                  // nobody waits for it
	Later                 // when a pause is over
	Batch                 // in one transaction with its neighbours
	Here                  // alone, at once; within MULTI it is queued
	Aside                 // alone, and not in the event loop
)

// Bounds of what shares a transaction or an event loop, and so of how long others wait.
const (
	// MaxBatch is how many requests may share a transaction, and MaxBatchBytes how many bytes of arguments they may have.
	MaxBatch      = 64
	MaxBatchBytes = 64 << 10
	// maxWoken is how many waiters a command may serve, about 2 us each.
	maxWoken = 256
	// maxFreed is how many subscriptions and watched keys may end together, about 1 us each.
	maxFreed = 1000
)

// Decide says what becomes of a request, and why if it is refused.
func Decide(r *Request, s *Situation) (Verdict, error) {
	if s.Gone && s.Multi == nil && r.Command.OnlyReads() {
		return Drop, nil
	}
	if err := refusal(r, s); err != nil {
		return Refuse, err
	}
	switch {
	case s.State.Pause.Active.Load() && s.Driven && isPaused(r, s):
		return Later, nil
	case s.InLoop && evictsFirst(r, s):
		return Aside, nil
	case s.Multi == nil && mayShare(r, s):
		return Batch, nil
	case s.InLoop && !staysInLoop(r, s):
		return Aside, nil
	}
	return Here, nil
}

// evictsFirst reports whether keys are to be evicted before a request adds something, which may need the disk. It is not for
// what is queued only.
func evictsFirst(r *Request, s *Situation) bool {
	cmd := r.Command
	grows := cmd.Flags&(command.DenyOOM|command.RunsScript) != 0
	if s.Multi != nil {
		grows = cmd.Name == "exec" && s.Multi.Grows
	}
	return grows && s.State.IsOverBound()
}

// isPaused reports whether a pause concerns a request. One of writes concerns what a replica would get of it.
func isPaused(r *Request, s *Situation) bool {
	until, all := s.State.Pause.State()
	return !until.IsZero() && (all || Replicates(r, s))
}

// Replicates reports whether a replica would get something of a request. Messages are among that, and scripts whose flags
// do not exclude it.
func Replicates(r *Request, s *Situation) bool {
	switch r.Command.Name {
	case "exec":
		return s.Multi != nil && s.Multi.Replicates
	case "publish", "spublish", "pfcount":
		return true
	case "eval", "evalsha", "fcall":
		return !s.NoWrites(r.Command, r.Args)
	}
	return r.Command.IsWrite()
}

// mayShare reports whether a request may share a transaction with its neighbours. Nothing in it may take long, wait, or
// be about the session: the locks of all keys are held until the last one has run. In an event loop a reply is bounded, so
// what works as long as that may take part; and the transaction is to notify and to wake few.
func mayShare(r *Request, s *Situation) bool {
	switch {
	case s.Singly || r.Size > MaxBatchBytes:
		return false
	case r.Command.Flags&command.RunsScript != 0:
		if !mayTryScript(r, s) || !s.Known(r.Command, r.Args) {
			return false
		}
	case !IsShared(r) && !(s.InLoop && r.Command.Cost.Work == command.ByReply && !r.Command.Cost.Waits):
		return false
	}
	return !s.InLoop || isSoonOver(r, s)
}

// IsShared reports whether a request by itself is one that may share a transaction.
func IsShared(r *Request) bool {
	return r.Cost.Work == command.Constant && !r.Cost.Waits && len(r.Command.Keys) > 0 && r.Command.Flags&command.RunsInsideMulti == 0
}

// staysInLoop reports whether an event loop executes a request itself, because that takes little time.
func staysInLoop(r *Request, s *Situation) bool {
	cmd := r.Command
	switch {
	case s.Multi != nil && cmd.Flags&command.RunsInsideMulti == 0:
		return true // it is queued only
	case r.Size > MaxBatchBytes, VerifiesPassword(cmd, r.Args):
		return false
	case cmd.Name == "exec":
		return s.Multi == nil || s.Multi.isShort(s)
	case cmd.Name == "publish":
		return s.State.Hub.MatchesQuickly(len(r.Args[1]))
	case cmd.Flags&command.RunsScript != 0:
		return mayTryScript(r, s)
	case cmd.Flags&command.OfSession != 0 && len(r.Args) == 1 && !FreesQuickly(s.Subscriber, s.Watched):
		return false // such as UNSUBSCRIBE, UNWATCH, RESET: it may end all of them
	}
	return isShort(r) && isSoonOver(r, s)
}

// FreesQuickly reports whether it takes little time to end all subscriptions and watches of a client.
func FreesQuickly(s *pubsub.Subscriber, watched int) bool {
	return int64(watched)+s.Count(pubsub.Channel)+s.Count(pubsub.Pattern)+s.Count(pubsub.Shard) <= maxFreed
}

// MayRunInScript reports whether a script that is to be short may make a request: one that takes little time, or asks now
// and then whether to go on.
func MayRunInScript(r *Request, s *Situation) bool {
	cmd := r.Command
	switch {
	case cmd.Publishes():
		return s.State.Hub.MatchesQuickly(len(r.Args[1]))
	case cmd.Flags&command.WholeKeyspace != 0, len(cmd.Keys) == 0 && cmd.Flags&command.Fast == 0, r.Size > MaxBatchBytes:
		return false
	}
	return (isShort(r) || cmd.Cost.Work == command.InSteps) && isSoonOver(r, s)
}

// isShort reports whether a request takes little time, with a reply that is bounded.
func isShort(r *Request) bool {
	return r.Cost.Work == command.Constant || r.Cost.Work == command.BySize || r.Command.Cost.Work == command.ByReply
}

// isSoonOver reports whether what a request does for others takes little time too: its keyspace notifications are matched,
// and those served that wait for its keys, within its transaction.
func isSoonOver(r *Request, s *Situation) bool {
	return s.State.NotifiesQuickly(r.Size, len(r.Args)) && wakesFew(r, s.Store)
}

// wakesFew reports whether a request serves few of those who wait for its keys. A command of a list or a sorted set serves
// a waiter for each element that it gives; one that gives or deletes a stream, or moves a key, may serve all.
func wakesFew(r *Request, store *db.Store) bool {
	cmd := r.Command
	if !cmd.IsWrite() || store.Waiters() <= maxWoken {
		return true
	}
	if (cmd.Group == command.GroupList || cmd.Group == command.GroupSortedSet) && len(r.Args) <= maxWoken {
		return true
	}
	return store.Waiters(cmd.AppendKeys(nil, r.Args)...) <= maxWoken
}

// mayTryScript reports whether a script is tried where it has to be short. A function may have to be compiled first; what
// MONITOR shows must not be repeated.
func mayTryScript(r *Request, s *Situation) bool {
	return strings.HasPrefix(r.Command.Name, "eval") && !s.State.Hub.Monitored()
}
