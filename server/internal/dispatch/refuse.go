package dispatch

import (
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
	"github.com/stavedb/stave/server/internal/shared"
)

// refusal is why a request is not executed. The first reason is the reply, so their order is part of the protocol: it is
// Redis's.
func refusal(r *Request, s *Situation) error {
	cmd := r.Command
	if s.Multi != nil && cmd.Flags&command.NoMulti != 0 {
		return command.ErrInMulti
	}
	if s.Permit != nil {
		if err := s.Permit(cmd, r.Args); err != nil {
			return err
		}
	}
	if s.State.Options.Cluster {
		if err := refusesInCluster(r, s); err != nil {
			return err
		}
	}
	if s.Multi != nil && stallsExec(r) {
		return command.ErrInMulti
	}
	if s.Subscribed && cmd.Flags&command.WhileSubscribed == 0 {
		return errSubscribedMode(cmd.Name)
	}
	if s.State.Following.IsReplica() {
		if err := refusesAsReplica(r, s); err != nil {
			return err
		}
	}
	if err := s.State.RefusesGrowth(cmd, s.Multi != nil && s.Multi.Grows, !s.InLoop); err != nil {
		return err
	}
	if s.State.Gate != nil {
		if err := refusesAsMember(r, s); err != nil {
			return err
		}
	}
	if s.State.Replicas.TooFew() && (cmd.IsWrite() || cmd.Name == "exec" && s.Multi != nil && s.Multi.Writes) {
		return shared.ErrNoReplicas
	}
	return nil
}

// refusesAsReplica says why a replica does not execute a request: its master alone writes, and what it has may be too old.
func refusesAsReplica(r *Request, s *Situation) error {
	cmd := r.Command
	if cmd.IsWrite() || cmd.Flags&command.ReadOnly != 0 && !s.Client.ReadOnly.Load() {
		if err := s.State.RedirectOf(s.Client); err != nil {
			return err
		}
	}
	if cmd.IsWrite() { // what EXEC runs was refused when it was queued, or its commit is
		return shared.ErrReplica
	}
	if cmd.Flags&command.Stale == 0 && s.State.Following.IsStale() && s.State.Tunables.NoStaleData.Load() {
		return shared.ErrMasterDown
	}
	return nil
}

// refusesAsMember says why a member of a group does not execute a request: it is not sure to be the primary, and follows none yet.
func refusesAsMember(r *Request, s *Situation) error {
	cmd := r.Command
	isOfData := cmd.Flags&(command.ReadOnly|command.Write|command.RunsScript) != 0 || cmd.Name == "exec" && s.Multi != nil || cluster.LooksAtKeys(cmd)
	if isOfData && !s.State.Gate.Answers() {
		return shared.ErrNoPrimary
	}
	return nil
}

// refusesInCluster says why a server in cluster mode does not execute a request: keys of several slots in one, as any node would, keys
// of another group, and keys on a member of a group that is not the primary, unless the client wants to read what that has. An EXEC is refused as a
// whole if the keys of its commands are of several slots, though each command has keys of one.
func refusesInCluster(r *Request, s *Situation) error {
	isExec := r.Command.Name == "exec" && s.Multi != nil
	if isExec && !s.Multi.hasOneSlot() {
		return cluster.ErrCrossSlot
	}
	if err := cluster.Refuses(r.Command, r.Args); err != nil {
		return err
	}
	m := s.State.Member
	if m == nil {
		return nil
	}
	slots, follows := m.Slots(), s.State.Following.IsReplica()
	if !follows && slots.IsAll() {
		return nil
	}
	slot, ok := cluster.SlotOfRequest(r.Command, r.Args)
	if isExec && len(s.Multi.Keys) > 0 {
		slot, ok = cluster.SlotOf(s.Multi.Keys[0]), true
	}
	writes := r.Command.IsWrite() || isExec && s.Multi.Writes
	switch {
	case !ok:
		return nil
	case !slots.Has(slot):
		return isElsewhere(m, slot)
	case !follows || s.Client.ReadOnly.Load() && !writes:
		return nil
	}
	known := m.Known()
	if known.Primary == m.Place().ID { // which this server is about to become
		return shared.ErrNoPrimary
	}
	return moved(m, slot, &known.Record, shared.ErrNoPrimary)
}

// isElsewhere sends a client to the group that has a slot.
func isElsewhere(m shared.Member, slot int) error {
	others := m.Others()
	for i := range others {
		if others[i].Owns.Has(slot) {
			return moved(m, slot, &others[i].Record, cluster.ErrNotServed)
		}
	}
	return cluster.ErrNotServed
}

// moved sends a client to the primary of a group. Where that would be this server, by an address that another one had before, it would
// ask again and again.
func moved(m shared.Member, slot int, of *group.Record, orElse command.Error) error {
	address := of.Addresses[of.Primary]
	if address == "" || address == m.Place().Address {
		return orElse
	}
	return command.Errorf("MOVED %d %s", slot, address)
}

// VerifiesPassword reports whether a request may take the time of a slow hash to verify a password.
func VerifiesPassword(cmd *command.Command, args [][]byte) bool {
	return cmd.Name == "auth" || cmd.Name == "hello" && len(args) > 2
}

// stallsExec reports whether a request may take the time of slow hashes, of a sync, or of looking up a host. Within
// MULTI it is refused, which Redis does not do: EXEC would let all others wait for that with keys locked.
func stallsExec(r *Request) bool {
	switch r.Command.Name {
	case "acl|setuser", "acl|load":
		return true
	case "config|set":
		return shared.SettingTakesLong(r.Args[2:])
	}
	return false
}

// errSubscribedMode refuses a command of a session that has subscribed.
func errSubscribedMode(name string) command.Error {
	return command.Errorf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", name)
}
