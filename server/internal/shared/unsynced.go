package shared

import (
	"errors"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/gate"
)

// Unsynced is the newest commit of a session that may not be as durable yet as its replies promise: on the disk, and, of a member
// of a group, shown by its gate. Only the session and its driver use it.
type Unsynced struct {
	Ticket db.Ticket // of the commit; 0 for none
	From   int       // where in the output the reply of the oldest such commit starts
	Term   uint64    // of the gate, when what is replied to was begun
	Round  int64     // of a group with strict reads: a byte of the stream that was not there yet when a reply was made; 0: none
}

// Hold notes a commit that the reply which starts at from must not leave before. Replies that came before it in the
// output may leave: they depend on nothing that is not durable.
func (u *Unsynced) Hold(ticket db.Ticket, from int) {
	if u.Ticket == 0 {
		u.From = from
	}
	u.Ticket = max(u.Ticket, ticket)
}

// IsDurable reports whether replies may leave that depend on the commit: WaitDurable would return at once, without an error.
func (u *Unsynced) IsDurable(v *State) bool {
	return v.Store.Durable(u.Ticket) && (v.Gate == nil || u.isShown(v))
}

func (u *Unsynced) isShown(v *State) bool {
	return u.Ticket == 0 || v.Gate.Term() == u.Term && v.Gate.Shows(uint64(u.Ticket)) && (u.Round == 0 || v.Gate.HasRound(u.Round))
}

// WaitDurable returns when replies may leave that depend on a commit, and all before it: it is as durable as the sync mode
// promises, and the gate shows it. Outcome says whether they may.
func (v *State) WaitDurable(t db.Ticket, round int64) error {
	if err := v.Store.WaitDurable(t); err != nil || v.Gate == nil {
		return err
	}
	if err := v.Gate.Wait(uint64(t)); err != nil || round == 0 {
		return err
	}
	return v.Gate.WaitRound(round)
}

// AskRound has the members of the group acknowledge a byte of the stream soon, if nothing has been written since it was noted.
func (v *State) AskRound(round int64) {
	if round > 0 && v.Replicas.Stream.Position().Offset < round {
		v.Member.Ping()
	}
}

// IsPending reports whether they may not leave yet, and may later.
func (u *Unsynced) IsPending(v *State) bool {
	return !u.IsDurable(v) && (v.Gate == nil || v.Gate.Term() == u.Term)
}

// Outcome says whether replies may leave that are not pending, or after WaitDurable has returned err for the commit, or for a later one.
func (u *Unsynced) Outcome(v *State, err error) error {
	switch {
	case v.Gate == nil || err != nil && !errors.Is(err, gate.ErrUnknown):
		return err
	case u.isShown(v):
		return nil
	}
	return gate.ErrUnknown
}

// Errors of a member of a group. The first one may come after a write: nothing else of its connection is answered. The second one is
// known to clients, which try again, perhaps elsewhere.
const (
	ErrUnknownOutcome command.Error = "UNKNOWNOUTCOME This server may have ceased to be the primary of its group: what was written may be lost, or not"
	ErrNoPrimary      command.Error = "CLUSTERDOWN This server is not known to be the primary of its group"
)
