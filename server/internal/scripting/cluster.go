package scripting

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
	"github.com/stavedb/stave/server/internal/shared"
)

// errFlagNoCluster refuses a script whose shebang says no-cluster. It is Redis's text.
const errFlagNoCluster command.Error = "ERR Can not run script on cluster, 'no-cluster' flag is set."

// The refusals of a call of a script.
const (
	errScriptNotLocalKey = "ERR Script attempted to access a non local key in a cluster node"
	errScriptCrossSlot   = "ERR Script attempted to access keys that do not hash to the same slot"
)

// refusesCall is refusesInCluster for a call of a script. A command with keys of several slots gets the text for a key on
// another node, as in Redis, and so does one with keys of another group.
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
	case v.Member == nil:
		return ""
	}
	if slots := v.Member.Slots(); !slots.IsAll() {
		if slot, ok := cluster.SlotOfRequest(cmd, args); ok && !slots.Has(slot) {
			return errScriptNotLocalKey
		}
	}
	return ""
}

// leavesSlot refuses a command of a script whose keys are of another slot than those before them. The keys of one
// command are of one slot.
func (r *execution) leavesSlot(cmd *command.Command, args [][]byte) (refusal string) {
	for _, key := range cmd.AppendKeys(nil, args) {
		slot := cluster.SlotOf(key)
		if r.slot >= 0 && slot != r.slot {
			return errScriptCrossSlot
		}
		r.slot = slot
	}
	return ""
}
