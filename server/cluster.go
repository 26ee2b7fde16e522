package server

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
	"github.com/stavedb/stave/server/internal/shared"
)

// The places that ask package cluster what a cluster refuses, and what it is to say of this server.

// errFlagNoCluster refuses a script whose shebang says no-cluster. It is Redis's text.
const errFlagNoCluster command.Error = "ERR Can not run script on cluster, 'no-cluster' flag is set."

// The refusals of a call of a script.
const (
	errScriptNotLocalKey = "ERR Script attempted to access a non local key in a cluster node"
	errScriptCrossSlot   = "ERR Script attempted to access keys that do not hash to the same slot"
)

// refusesInCluster says why a server in cluster mode does not execute a request. All slots are its own, so it never
// redirects: what it refuses is keys of several slots in one request, as any node would. An EXEC is refused as a whole
// if the keys of its commands are of several slots, though each command has keys of one.
func refusesInCluster(cmd *command.Command, args [][]byte, q *queue) error {
	if cmd.Name == "exec" && q != nil && !sameSlotQueued(q) {
		return cluster.ErrCrossSlot
	}
	return cluster.Refuses(cmd, args)
}

// sameSlotQueued reports whether all keys of an EXEC have one slot; so have none. It hashes every key, so EXEC of a long
// queue takes that time once more in cluster mode.
func sameSlotQueued(q *queue) bool {
	for _, key := range q.keys {
		if cluster.SlotOf(key) != cluster.SlotOf(q.keys[0]) {
			return false
		}
	}
	return true
}

// refusesCall is refusesInCluster for a call of a script. A command with keys of several slots gets the text for a key on
// another node, as in Redis.
func refusesCall(v *shared.State, cmd *command.Command, args [][]byte) string {
	if !v.Options.Cluster {
		return ""
	}
	err := cluster.Refuses(cmd, args)
	switch {
	case err == cluster.ErrCrossSlot:
		return errScriptNotLocalKey
	case err != nil:
		return v.ErrorText(err)
	}
	return ""
}

// leavesSlot refuses a command of a script whose keys are of another slot than those before them. The keys of one
// command are of one slot.
func (r *scriptRun) leavesSlot(cmd *command.Command, args [][]byte) (refusal string) {
	for _, key := range cmd.AppendKeys(nil, args) {
		slot := cluster.SlotOf(key)
		if r.slot >= 0 && slot != r.slot {
			return errScriptCrossSlot
		}
		r.slot = slot
	}
	return ""
}
