package shared

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/internal/serverside"
	"github.com/stavedb/stave/server/command"
)

// FailoverPhase is how far a FAILOVER has got.
type FailoverPhase int32

const (
	NoFailover FailoverPhase = iota
	AwaitingReplica
	HandingOver
)

// String is the phase as INFO names it.
func (p FailoverPhase) String() string {
	return [...]string{"no-failover", "waiting-for-sync", "failover-in-progress"}[p]
}

// Failover hands the role of the master over to a replica.
//
//  1. Writes are paused, and wait, until a replica has acknowledged the whole stream.
//  2. The store refuses writes, for some may have passed the pause; if the replica lacks one of these, 1 goes on. The stream stays
//     where it is: not even a PING is added.
//  3. The server becomes the replica of that one, in a commit that also has where both stand in the stream. Its link asks, by
//     PSYNC FAILOVER, that the other one becomes the master.
//  4. The other one has: the pause ends, and what was paused is refused with READONLY.
//
// No acknowledged write is lost, for between 2 and 4 there are none. A server that is killed after 3 is a replica when it is
// started again, and its link asks once more; one that is killed before is the master. Until 3 the time-out and ABORT end
// it; after that ABORT alone does, as in Redis.
type Failover struct {
	state     *State
	phase     atomic.Int32
	requested chan struct{} // has an element while one is to be begun

	mu      sync.Mutex // guards the changes of phase and of the master, and the rest; nobody takes it who has keys locked
	request FailoverRequest
}

// FailoverRequest is what FAILOVER asks for.
type FailoverRequest struct {
	Target Master    // zero: the first replica that has everything
	Until  time.Time // zero: for ever
	Force  bool      // at Until the target becomes the master, whatever it lacks
}

// Errors of FAILOVER, in Redis's words.
const (
	ErrFailoverRuns    command.Error = "ERR FAILOVER already in progress."
	ErrNoFailover      command.Error = "ERR No failover in progress."
	ErrFailingOver     command.Error = "ERR REPLICAOF not allowed while failing over."
	errTakeOverMaster  command.Error = "ERR PSYNC FAILOVER can't be sent to a master."
	errTakeOverID      command.Error = "ERR PSYNC FAILOVER replid must match my replid."
	errFailoverReplica command.Error = "ERR FAILOVER is not valid when server is a replica."
	errNoReplicas      command.Error = "ERR FAILOVER requires connected replicas."
	errForceAlone      command.Error = "ERR FAILOVER with force option requires both a timeout and target HOST and IP."
	errNotAReplica     command.Error = "ERR FAILOVER target HOST and PORT is not a replica."
	errNotOnline       command.Error = "ERR FAILOVER target replica is not online."
)

// Phase is how far it has got.
func (f *Failover) Phase() FailoverPhase { return FailoverPhase(f.phase.Load()) }

// Requested is readable when Run is to be called.
func (f *Failover) Requested() <-chan struct{} { return f.requested }

// ReplicaOf is REPLICAOF: it makes the server the replica of another one, or a master. When it returns, nothing more is applied
// of the master before. While it runs no FAILOVER begins or goes on, and while one of these runs it is refused.
func (f *Failover) ReplicaOf(to Master) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replicaOf(to)
}

func (f *Failover) replicaOf(to Master) error {
	if f.Phase() != NoFailover {
		return ErrFailingOver
	}
	return f.state.Following.set(to, false)
}

// TakeOver makes the server, a replica, the master: its master asks for that, which becomes one of its replicas. id is that of the
// stream that both have, client the address that it asks from.
func (f *Failover) TakeOver(id, client string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, known := f.state.Replicas.Stream.Origin()
	switch {
	case !f.state.Following.IsReplica():
		return errTakeOverMaster
	case !known || !strings.EqualFold(id, string(at.ReplID[:])):
		return errTakeOverID
	}
	f.state.Options.Logger.Info("the master hands over its role", "client", client)
	return f.replicaOf(Master{})
}

// Begin begins one: writes are paused when it returns, and Run does the rest.
func (f *Failover) Begin(r FailoverRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Phase() != NoFailover {
		return ErrFailoverRuns
	}
	if err := f.refuses(r); err != nil {
		return err
	}
	f.request = r
	f.phase.Store(int32(AwaitingReplica))
	f.state.Pause.hold(true)
	serverside.DB.SetExpiryCycle(f.state.Store, false)
	f.state.Options.Logger.Info("FAILOVER: writes wait until a replica has everything", "target", r.Target, "until", r.Until, "force", r.Force)
	select {
	case f.requested <- struct{}{}:
	default: // the one before it was ended before Run had seen it
	}
	return nil
}

// refuses says why there cannot be one. The order is Redis's.
func (f *Failover) refuses(r FailoverRequest) error {
	replicas := f.state.Replicas.Stream.Figures(time.Now()).Replicas
	switch {
	case f.state.Following.IsReplica():
		return errFailoverReplica
	case len(replicas) == 0:
		return errNoReplicas
	case r.Force && (r.Until.IsZero() || r.Target.IsZero()):
		return errForceAlone
	case r.Target.IsZero():
		return nil
	}
	for _, replica := range replicas {
		if replica.Address == r.Target.Host && replica.Port == r.Target.Port {
			if replica.State != "online" {
				return errNotOnline
			}
			return nil
		}
	}
	return errNotAReplica
}

// Step goes on with one that waits, and reports whether that is over: it was handed over, or ended.
func (f *Failover) Step(now time.Time) (over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Phase() != AwaitingReplica {
		return true
	}
	stream := f.state.Replicas.Stream
	if until := f.request.Until; !until.IsZero() && now.After(until) {
		if !f.request.Force {
			f.end("no replica had everything in time")
			return true
		}
		f.handOver(f.request.Target)
		return true
	}
	host, port, ok := stream.CaughtUp(f.request.Target.Host, f.request.Target.Port, false)
	if !ok {
		stream.AskForAcks()
		return false
	}
	if err := serverside.DB.HoldWrites(f.state.Store, true); err != nil {
		f.end(err.Error())
		return true
	}
	if host, port, ok = stream.CaughtUp(host, port, true); !ok {
		_ = serverside.DB.HoldWrites(f.state.Store, false) // which has no other error than that the store is closed
		return false
	}
	f.handOver(Master{Host: host, Port: port})
	return true
}

// handOver makes the server the replica of its successor.
func (f *Failover) handOver(to Master) {
	f.phase.Store(int32(HandingOver))
	f.state.Options.Logger.Info("FAILOVER: the server becomes the replica of its successor", "successor", to)
	err := f.state.Following.set(to, true)
	f.state.Replicas.Stream.Release()                  // it adds nothing as that of a replica, unless that failed
	_ = serverside.DB.HoldWrites(f.state.Store, false) // and neither are there writes
	if err != nil {
		f.end(err.Error())
	}
}

// Abort ends it: the server is the master, as before.
func (f *Failover) Abort(why string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	handsOver := f.phase.CompareAndSwap(int32(HandingOver), int32(AwaitingReplica)) // unless done has come first
	if f.Phase() == NoFailover {
		return ErrNoFailover
	}
	if handsOver {
		if err := f.state.Following.set(Master{}, false); err != nil {
			f.phase.Store(int32(HandingOver))
			return err
		}
	}
	f.end(why)
	return nil
}

// end ends it without a successor.
func (f *Failover) end(why string) {
	f.state.Options.Logger.Warn("FAILOVER was ended", "phase", f.Phase(), "error", why)
	f.clear()
}

// clear lets writes be again: they wait no longer.
func (f *Failover) clear() {
	serverside.DB.SetExpiryCycle(f.state.Store, true)
	f.state.Pause.hold(false)
	f.phase.Store(int32(NoFailover))
	f.state.wakePostponed()
}

// done is called when the successor has taken over, by the link, for which Abort may wait: so it takes no lock.
func (f *Failover) done() {
	serverside.DB.SetExpiryCycle(f.state.Store, true)
	f.state.Pause.hold(false)
	if f.phase.CompareAndSwap(int32(HandingOver), int32(NoFailover)) {
		f.state.Options.Logger.Info("FAILOVER: the successor has taken over")
	}
	f.state.wakePostponed()
}

// resume goes on with one that was handing over when the server ended.
func (f *Failover) resume() { f.phase.Store(int32(HandingOver)) }

// TookOver notes that the successor has become the master: the server is one of its replicas, as any other. If the master is
// being changed, the link ends anyway.
func (f *Following) TookOver(m Master) error {
	if !f.changing.TryLock() {
		return nil
	}
	defer f.changing.Unlock()
	if now, _ := f.Master(); now != m {
		return nil
	}
	err := serverside.DB.SetReplicaOf(f.state.Store, encodeFollowing(m, f.configured, false), true)
	if err == nil {
		f.Report(m, func(s *LinkStatus) { s.HandsOver = false })
		f.state.Failover.done()
	}
	return err
}
