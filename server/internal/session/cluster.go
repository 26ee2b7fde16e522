package session

import (
	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
)

// The places that ask package cluster what a cluster refuses, and what it is to say of this server.

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
