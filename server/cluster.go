package server

import (
	"net"
	"strconv"

	"github.com/stavedb/stave/server/command"
	"github.com/stavedb/stave/server/internal/cluster"
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

// clusterNode is this server as a client finds it: where the settings announce it, or else where this client has found
// it. So a client that came through a forwarded port and one on this machine are each told an address that works for
// them; a client of a Unix socket is told the port of the TCP listener and no host, which clients take for the one that
// they know.
func clusterNode(c *command.Call) cluster.Node {
	s := sessionOf(c)
	v := s.server
	setting := v.config.Get
	number := func(name string) int {
		n, _ := strconv.Atoi(setting(name)) // checked
		return n
	}
	n := cluster.Node{
		Enabled: v.options.Cluster, Store: v.store, IP: setting("cluster-announce-ip"), Hostname: setting("cluster-announce-hostname"),
		Preferred: setting("cluster-preferred-endpoint-type"), IsTLS: s.isTLS, ReadOnly: &s.client.readOnly, MaxReply: v.options.MaxReply,
	}
	host, port, err := net.SplitHostPort(s.client.local)
	if err != nil { // a Unix socket
		_, port = v.listenAddress()
		host = ""
	}
	if n.IP == "" {
		n.IP = host
	}
	if n.Port = number("cluster-announce-port"); n.Port == 0 {
		n.Port, _ = strconv.Atoi(port)
	}
	if n.BusPort = number("cluster-announce-bus-port"); n.BusPort == 0 {
		n.BusPort = n.Port + 10000 // nothing listens there
	}
	return n
}

// refusesCall is refusesInCluster for a call of a script. A command with keys of several slots gets the text for a key on
// another node, as in Redis.
func (v *Server) refusesCall(cmd *command.Command, args [][]byte) string {
	if !v.options.Cluster {
		return ""
	}
	err := cluster.Refuses(cmd, args)
	switch {
	case err == cluster.ErrCrossSlot:
		return errScriptNotLocalKey
	case err != nil:
		return v.errorText(err)
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

// modeName is the mode as INFO and HELLO name it.
func (v *Server) modeName() string {
	if v.options.Cluster {
		return "cluster"
	}
	return "standalone"
}
