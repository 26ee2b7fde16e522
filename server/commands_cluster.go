package server

import (
	"fmt"
	"strings"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

// Without cluster-enabled every question about a cluster has the same answer, in Redis's words: clients that look for a cluster go
// on as with a single server. With it the answers are those of a cluster of one node (cluster.go), which cannot be changed.

const (
	errNoCluster    command.Error = "ERR This instance has cluster support disabled"
	errFixedCluster command.Error = "ERR This cluster cannot be changed: it has one node, which owns all slots"
)

// inCluster makes a handler that needs cluster mode.
func inCluster(run func(*Session, *command.Call) error) func(*command.Call) error {
	return onSession(func(s *Session, c *command.Call) error {
		if !s.server.options.Cluster {
			return errNoCluster
		}
		return run(s, c)
	})
}

// refuseChange answers what would change the cluster.
func refuseChange(*Session, *command.Call) error { return errFixedCluster }

const (
	clusterReads   = command.Stale
	clusterAdmin   = command.Admin | command.Stale
	clusterChanges = clusterAdmin | command.NoAsyncLoading
)

// clusterChange is a row of CLUSTER that would change the cluster.
func clusterChange(name string, arity int, flags command.Flag, since, syntax string) *command.Command {
	return &command.Command{
		Name: "cluster|" + name, Arity: arity, Flags: flags, Since: since, Complexity: "O(1)", Syntax: syntax,
		Summary: "Is refused: a cluster has this node only.", Run: inCluster(refuseChange),
	}
}

// clusterQuestion is a row of CLUSTER that has an answer.
func clusterQuestion(name string, arity int, flags command.Flag, since, syntax, complexity, summary string, run func(*Session, *command.Call) error) *command.Command {
	return &command.Command{
		Name: "cluster|" + name, Arity: arity, Flags: flags, Since: since, Complexity: complexity, Syntax: syntax, Summary: summary, Run: inCluster(run),
	}
}

const everyKey = "O(n), n being the number of all keys"

var clusterCommands = command.InGroup(command.GroupCluster, []*command.Command{
	{Name: "cluster", Arity: -2, Since: "3.0.0", Complexity: "Depends on the subcommand", Summary: "A container for commands about the cluster of one node that cluster-enabled makes.",
		Subcommands: []*command.Command{
			clusterChange("addslots", -3, clusterChanges, "3.0.0", "slot [slot ...]"),
			clusterChange("addslotsrange", -4, clusterChanges, "7.0.0", "start-slot end-slot [start-slot end-slot ...]"),
			clusterChange("bumpepoch", 2, clusterChanges, "3.0.0", ""),
			clusterQuestion("count-failure-reports", 3, clusterAdmin, "3.0.0", "node-id", "O(1)", "Returns 0: no other node reports failures.", clusterFailureReports),
			clusterQuestion("countkeysinslot", 3, clusterReads, "3.0.0", "slot", everyKey, "Counts the keys of a slot.", clusterCountKeys),
			clusterChange("delslots", -3, clusterChanges, "3.0.0", "slot [slot ...]"),
			clusterChange("delslotsrange", -4, clusterChanges, "7.0.0", "start-slot end-slot [start-slot end-slot ...]"),
			clusterChange("failover", -2, clusterChanges, "3.0.0", "[FORCE | TAKEOVER]"),
			clusterChange("flushslots", 2, clusterChanges, "3.0.0", ""),
			clusterChange("forget", 3, clusterChanges, "3.0.0", "node-id"),
			clusterQuestion("getkeysinslot", 4, clusterReads, "3.0.0", "slot count", everyKey, "Returns keys of a slot.", clusterGetKeys),
			clusterQuestion("help", 2, command.AnyState, "5.0.0", "", "O(1)", "Lists the subcommands.", func(_ *Session, c *command.Call) error { return command.Help(c) }),
			clusterQuestion("info", 2, clusterReads, "3.0.0", "", "O(1)", "Describes the state of the cluster.", clusterInfo),
			clusterQuestion("keyslot", 3, clusterReads, "3.0.0", "key", "O(n), n being the length of the key", "Returns the slot of a key.", clusterKeySlot),
			clusterQuestion("links", 2, clusterReads, "7.0.0", "", "O(1)", "Returns an empty list: there are no other nodes.",
				func(_ *Session, c *command.Call) error { c.Out.Array(0); return nil }),
			clusterChange("meet", -4, clusterChanges, "3.0.0", "ip port [cluster-bus-port]"),
			clusterQuestion("myid", 2, clusterReads, "3.0.0", "", "O(1)", "Returns the id of this node.",
				func(s *Session, c *command.Call) error { c.Out.BulkString(s.server.nodeID("node")); return nil }),
			clusterQuestion("myshardid", 2, clusterReads, "7.2.0", "", "O(1)", "Returns the id of the only shard.",
				func(s *Session, c *command.Call) error { c.Out.BulkString(s.server.nodeID("shard")); return nil }),
			clusterQuestion("nodes", 2, clusterReads, "3.0.0", "", "O(1)", "Describes the nodes: this one.", clusterNodes),
			clusterQuestion("replicas", 3, clusterAdmin, "5.0.0", "node-id", "O(1)", "Returns an empty list: there are no replicas.", clusterReplicas),
			clusterChange("replicate", 3, clusterChanges, "3.0.0", "node-id"),
			clusterChange("reset", -2, clusterAdmin|command.NoScript, "3.0.0", "[HARD | SOFT]"),
			clusterQuestion("saveconfig", 2, clusterChanges, "3.0.0", "", "O(1)", "Is accepted: there is nothing to save.", func(_ *Session, c *command.Call) error { return c.OK() }),
			clusterChange("set-config-epoch", 3, clusterChanges, "3.0.0", "config-epoch"),
			clusterChange("setslot", -4, clusterChanges, "3.0.0", "slot action [node-id]"),
			clusterQuestion("shards", 2, clusterReads, "7.0.0", "", "O(1)", "Returns the shards: one, with all slots.", clusterShards),
			clusterQuestion("slaves", 3, clusterAdmin, "3.0.0", "node-id", "O(1)", "The old name of CLUSTER REPLICAS.", clusterReplicas),
			clusterQuestion("slots", 2, clusterReads, "3.0.0", "", "O(1)", "Returns which node owns which slots.", clusterSlots),
		}},
	{Name: "readonly", Arity: 1, Flags: command.AnyState | command.Fast | command.ConnectionCategory, Since: "3.0.0", Complexity: "O(1)",
		Summary: "Is accepted in cluster mode: this node is no replica.", Run: inCluster(func(s *Session, c *command.Call) error { s.client.readOnly.Store(true); return c.OK() })},
	{Name: "readwrite", Arity: 1, Flags: command.AnyState | command.Fast | command.ConnectionCategory, Since: "3.0.0", Complexity: "O(1)",
		Summary: "Ends what READONLY has begun.", Run: inCluster(func(s *Session, c *command.Call) error { s.client.readOnly.Store(false); return c.OK() })},
	{Name: "asking", Arity: 1, Flags: command.Fast | command.ConnectionCategory, Since: "3.0.0", Complexity: "O(1)",
		Summary: "Is accepted in cluster mode: no slot is on its way.", Run: inCluster(func(_ *Session, c *command.Call) error { return c.OK() })},
})

// clusterInfo is CLUSTER INFO.
func clusterInfo(_ *Session, c *command.Call) error {
	var text strings.Builder
	for _, field := range []struct {
		name  string
		value any
	}{
		{"state", "ok"}, {"slots_assigned", slots}, {"slots_ok", slots}, {"slots_pfail", 0}, {"slots_fail", 0}, {"known_nodes", 1}, {"size", 1},
		{"current_epoch", 0}, {"my_epoch", 0}, {"stats_messages_sent", 0}, {"stats_messages_received", 0},
	} {
		fmt.Fprintf(&text, "cluster_%s:%v\r\n", field.name, field.value)
	}
	text.WriteString("total_cluster_links_buffer_limit_exceeded:0\r\n")
	c.Out.Verbatim("txt", text.String())
	return nil
}

// clusterNodes is CLUSTER NODES.
func clusterNodes(s *Session, c *command.Call) error {
	e := s.endpoint()
	hostname := ""
	if e.hostname != "" {
		hostname = "," + e.hostname
	}
	c.Out.Verbatim("txt", fmt.Sprintf("%s %s:%d@%d%s myself,master - 0 0 0 connected 0-%d\n", s.server.nodeID("node"), e.ip, e.port, e.busPort, hostname, slots-1))
	return nil
}

// clusterSlots is CLUSTER SLOTS. What the preferred name of the node leaves out follows it.
func clusterSlots(s *Session, c *command.Call) error {
	e := s.endpoint()
	kind := s.server.config.Get("cluster-preferred-endpoint-type")
	var more []string
	if kind != "ip" {
		more = append(more, "ip", e.ip)
	}
	if kind != "hostname" && e.hostname != "" {
		more = append(more, "hostname", e.hostname)
	}
	c.Out.Array(1)
	c.Out.Array(3)
	c.Out.Int(0)
	c.Out.Int(slots - 1)
	c.Out.Array(4)
	if name, known := e.preferred(kind); known {
		c.Out.BulkString(name)
	} else {
		c.Out.Null()
	}
	c.Out.Int(int64(e.port))
	c.Out.BulkString(s.server.nodeID("node"))
	c.Out.Map(len(more) / 2)
	for _, word := range more {
		c.Out.BulkString(word)
	}
	return nil
}

// clusterShards is CLUSTER SHARDS.
func clusterShards(s *Session, c *command.Call) error {
	e := s.endpoint()
	c.Out.Array(1)
	c.Out.Map(2)
	c.Out.BulkString("slots")
	c.Out.Array(2)
	c.Out.Int(0)
	c.Out.Int(slots - 1)
	c.Out.BulkString("nodes")
	c.Out.Array(1)
	fields := 7
	if e.hostname != "" {
		fields++
	}
	c.Out.Map(fields)
	text := func(field, value string) {
		c.Out.BulkString(field)
		c.Out.BulkString(value)
	}
	text("id", s.server.nodeID("node"))
	port := "port"
	if s.isTLS {
		port = "tls-port"
	}
	c.Out.BulkString(port)
	c.Out.Int(int64(e.port))
	text("ip", e.ip)
	name, _ := e.preferred(s.server.config.Get("cluster-preferred-endpoint-type"))
	text("endpoint", name)
	if e.hostname != "" {
		text("hostname", e.hostname)
	}
	text("role", "master")
	c.Out.BulkString("replication-offset")
	c.Out.Int(0)
	text("health", "online")
	return nil
}

// clusterKeySlot is CLUSTER KEYSLOT.
func clusterKeySlot(_ *Session, c *command.Call) error {
	c.Out.Int(int64(slotOf(c.Arg(2))))
	return nil
}

// eachKeyInSlot calls fn with the keys of a slot, until it returns false. It looks at all keys, page by page, and so without
// keeping any locked in between.
func (s *Session) eachKeyInSlot(c *command.Call, slot int64, fn func(key string) bool) error {
	if c.Queued {
		return errQueuedScan
	}
	space, err := s.server.store.Use(0)
	if err != nil {
		return err
	}
	for cursor := uint64(0); ; {
		if err := s.host.Asking().Err(); err != nil {
			return err
		}
		page, next, err := space.Keyspace().Scan(cursor, db.KeyScanOptions{Count: 1000})
		if err != nil {
			return err
		}
		for i := range page {
			if int64(slotOf(page[i].Key)) == slot && !fn(page[i].Key) {
				return nil
			}
		}
		if cursor = next; next == 0 {
			return nil
		}
	}
}

// errQueuedScan refuses to look at all keys while some are locked.
const errQueuedScan command.Error = "ERR CLUSTER COUNTKEYSINSLOT and GETKEYSINSLOT are not allowed within MULTI or a script"

// clusterCountKeys is CLUSTER COUNTKEYSINSLOT.
func clusterCountKeys(s *Session, c *command.Call) error {
	slot, ok := number.ParseInt(c.Arg(2))
	switch {
	case !ok:
		return command.ErrNotInteger
	case slot < 0 || slot >= slots:
		return command.Error("ERR Invalid slot")
	}
	n := 0
	err := s.eachKeyInSlot(c, slot, func(string) bool { n++; return true })
	return c.Int(n, err)
}

// clusterGetKeys is CLUSTER GETKEYSINSLOT.
func clusterGetKeys(s *Session, c *command.Call) error {
	slot, ok := number.ParseInt(c.Arg(2))
	most, okCount := number.ParseInt(c.Arg(3))
	switch {
	case !ok || !okCount:
		return command.ErrNotInteger
	case slot < 0 || slot >= slots || most < 0:
		return command.Error("ERR Invalid slot or number of keys")
	}
	var keys []string
	size := 0
	err := s.eachKeyInSlot(c, slot, func(key string) bool {
		if int64(len(keys)) < most {
			keys = append(keys, key)
			size += len(key) + requestOverhead
		}
		return int64(len(keys)) < most && size <= s.server.options.MaxReply
	})
	if err != nil {
		return err
	}
	c.Out.Array(len(keys))
	for _, key := range keys {
		c.Out.BulkString(key)
	}
	return nil
}

// knownNode checks that argument 2 is the id of this node.
func (s *Session) knownNode(c *command.Call) error {
	if string(c.Arg(2)) != s.server.nodeID("node") {
		return command.Errorf("ERR Unknown node %s", command.Quoted(c.Arg(2)))
	}
	return nil
}

// clusterFailureReports is CLUSTER COUNT-FAILURE-REPORTS.
func clusterFailureReports(s *Session, c *command.Call) error {
	if err := s.knownNode(c); err != nil {
		return err
	}
	return c.Int(0, nil)
}

// clusterReplicas is CLUSTER REPLICAS.
func clusterReplicas(s *Session, c *command.Call) error {
	if err := s.knownNode(c); err != nil {
		return err
	}
	c.Out.Array(0)
	return nil
}
