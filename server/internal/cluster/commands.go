package cluster

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

const (
	errNoCluster    command.Error = "ERR This instance has cluster support disabled"
	errFixedCluster command.Error = "ERR This cluster cannot be changed: it has one node, which owns all slots"
)

// Node is the server as one of its clients sees it.
type Node struct {
	Enabled       bool // cluster-enabled
	Store         *db.Store
	IP, Hostname  string // where clients find it
	Port, BusPort int
	Preferred     string       // cluster-preferred-endpoint-type: how the node is named to clients
	IsTLS         bool         // the client's connection is encrypted
	ReadOnly      *atomic.Bool // what READONLY has set
	Redirect      bool         // the client is sent to a replica's master, unless it has set that
	MaxReply      int          // bytes
}

// id is an id of the store as that of a node or a shard, which is the same whenever the store is opened.
func (n *Node) id(of string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s %x", of, n.Store.Log().StoreID()))
	return hex.EncodeToString(sum[:])
}

// preferred is how the node is named to clients; ok is false if they shall use the
// address that they know.
func (n *Node) preferred() (name string, ok bool) {
	switch {
	case n.Preferred == "unknown-endpoint":
		return "", false
	case n.Preferred == "hostname" && n.Hostname != "":
		return n.Hostname, true
	case n.Preferred == "hostname":
		return "?", true
	}
	return n.IP, true
}

// refuseChange answers what would change the cluster.
func refuseChange(*Node, *command.Call) error { return errFixedCluster }

const (
	reads   = command.Stale
	admin   = command.Admin | command.Stale
	changes = admin | command.NoAsyncLoading
)

// asker is what finds the node at each call.
type asker func(*command.Call) Node

// inCluster makes a handler that needs cluster mode.
func (at asker) inCluster(run func(*Node, *command.Call) error) func(*command.Call) error {
	return func(c *command.Call) error {
		n := at(c)
		if !n.Enabled {
			return errNoCluster
		}
		return run(&n, c)
	}
}

// setReadOnly makes a handler of READONLY or READWRITE, which mean something in cluster mode and after CLIENT CAPA redirect.
func (at asker) setReadOnly(to bool) func(*command.Call) error {
	return func(c *command.Call) error {
		n := at(c)
		if !n.Enabled && !n.Redirect {
			return errNoCluster
		}
		n.ReadOnly.Store(to)
		return c.OK()
	}
}

// change is a row of CLUSTER that would change the cluster.
func (at asker) change(name string, arity int, flags command.Flag) *command.Command {
	return at.question(name, arity, flags, refuseChange)
}

// question is a row of CLUSTER that has an answer.
func (at asker) question(name string, arity int, flags command.Flag, run func(*Node, *command.Call) error) *command.Command {
	return &command.Command{Name: "cluster|" + name, Arity: arity, Flags: flags, Run: at.inCluster(run)}
}

// Commands are CLUSTER and its like. node is asked at each call.
func Commands(node func(*command.Call) Node) []*command.Command {
	at := asker(node)
	return command.InGroup(command.GroupCluster, []*command.Command{
		{Name: "cluster", Arity: -2, Subcommands: at.subcommands()},
		{Name: "readonly", Arity: 1, Flags: command.AnyState | command.Fast | command.ConnectionCategory,
			Run: at.setReadOnly(true)},
		{Name: "readwrite", Arity: 1, Flags: command.AnyState | command.Fast | command.ConnectionCategory,
			Run: at.setReadOnly(false)},
		{Name: "asking", Arity: 1, Flags: command.Fast | command.ConnectionCategory,
			Run: at.inCluster(func(_ *Node, c *command.Call) error { return c.OK() })},
	})
}

// subcommands are those of CLUSTER.
func (at asker) subcommands() []*command.Command {
	return []*command.Command{
		at.change("addslots", -3, changes),
		at.change("addslotsrange", -4, changes),
		at.change("bumpepoch", 2, changes),
		at.question("count-failure-reports", 3, admin, ofThisNode(0)),
		at.question("countkeysinslot", 3, reads, replyCountKeys),
		at.change("delslots", -3, changes),
		at.change("delslotsrange", -4, changes),
		at.change("failover", -2, changes),
		at.change("flushslots", 2, changes),
		at.change("forget", 3, changes),
		at.question("getkeysinslot", 4, reads, replyGetKeys),
		at.question("help", 2, command.AnyState, func(_ *Node, c *command.Call) error { return command.Help(c) }),
		at.question("info", 2, reads, replyInfo),
		at.question("keyslot", 3, reads, func(_ *Node, c *command.Call) error { return c.Int(SlotOf(c.Arg(2)), nil) }),
		at.question("links", 2, reads, func(_ *Node, c *command.Call) error { c.Out.Array(0); return nil }),
		at.change("meet", -4, changes),
		at.question("myid", 2, reads, func(n *Node, c *command.Call) error { c.Out.BulkString(n.id("node")); return nil }),
		at.question("myshardid", 2, reads, func(n *Node, c *command.Call) error { c.Out.BulkString(n.id("shard")); return nil }),
		at.question("nodes", 2, reads, replyNodes),
		at.question("replicas", 3, admin, ofThisNode([]any{})),
		at.change("replicate", 3, changes),
		at.change("reset", -2, admin|command.NoScript),
		at.question("saveconfig", 2, changes, func(_ *Node, c *command.Call) error { return c.OK() }),
		at.change("set-config-epoch", 3, changes),
		at.change("setslot", -4, changes),
		at.question("shards", 2, reads, replyShards),
		at.question("slaves", 3, admin, ofThisNode([]any{})),
		at.question("slots", 2, reads, replySlots),
	}
}

// replyInfo is CLUSTER INFO.
func replyInfo(_ *Node, c *command.Call) error {
	var text strings.Builder
	for _, field := range []struct {
		name  string
		value any
	}{
		{"state", "ok"}, {"slots_assigned", Slots}, {"slots_ok", Slots}, {"slots_pfail", 0}, {"slots_fail", 0}, {"known_nodes", 1}, {"size", 1},
		{"current_epoch", 0}, {"my_epoch", 0}, {"stats_messages_sent", 0}, {"stats_messages_received", 0},
	} {
		fmt.Fprintf(&text, "cluster_%s:%v\r\n", field.name, field.value)
	}
	text.WriteString("total_cluster_links_buffer_limit_exceeded:0\r\n")
	c.Out.Verbatim("txt", text.String())
	return nil
}

// replyNodes is CLUSTER NODES.
func replyNodes(n *Node, c *command.Call) error {
	hostname := ""
	if n.Hostname != "" {
		hostname = "," + n.Hostname
	}
	c.Out.Verbatim("txt", fmt.Sprintf("%s %s:%d@%d%s myself,master - 0 0 0 connected 0-%d\n", n.id("node"), n.IP, n.Port, n.BusPort, hostname, Slots-1))
	return nil
}

// replySlots is CLUSTER SLOTS. What the preferred name of the node leaves out follows it.
func replySlots(n *Node, c *command.Call) error {
	more := []command.Fact{}
	if n.Preferred != "ip" {
		more = append(more, command.Fact{Name: "ip", Value: n.IP})
	}
	if n.Preferred != "hostname" && n.Hostname != "" {
		more = append(more, command.Fact{Name: "hostname", Value: n.Hostname})
	}
	var preferred any
	if name, known := n.preferred(); known {
		preferred = name
	}
	return c.Reply([]any{[]any{0, Slots - 1, []any{preferred, n.Port, n.id("node"), more}}})
}

// replyShards is CLUSTER SHARDS.
func replyShards(n *Node, c *command.Call) error {
	port := "port"
	if n.IsTLS {
		port = "tls-port"
	}
	name, _ := n.preferred()
	node := []command.Fact{{Name: "id", Value: n.id("node")}, {Name: port, Value: n.Port}, {Name: "ip", Value: n.IP}, {Name: "endpoint", Value: name}}
	if n.Hostname != "" {
		node = append(node, command.Fact{Name: "hostname", Value: n.Hostname})
	}
	node = append(node, command.Fact{Name: "role", Value: "master"}, command.Fact{Name: "replication-offset", Value: 0}, command.Fact{Name: "health", Value: "online"})
	return c.Reply([]any{[]command.Fact{{Name: "slots", Value: []any{0, Slots - 1}}, {Name: "nodes", Value: []any{node}}}})
}

// eachKeyInSlot calls fn with the keys of a slot, until it returns false. It looks at all keys, page by page, and so
// without keeping any locked in between.
func (n *Node) eachKeyInSlot(c *command.Call, slot int64, fn func(key string) bool) error {
	if c.Queued {
		return errQueuedScan
	}
	space, err := n.Store.Use(0)
	if err != nil {
		return err
	}
	for cursor := uint64(0); ; {
		if err := c.Host.Asking().Err(); err != nil {
			return err
		}
		page, next, err := space.Keyspace().Scan(cursor, db.KeyScanOptions{Count: 1000})
		if err != nil {
			return err
		}
		for i := range page {
			if int64(SlotOf(page[i].Key)) == slot && !fn(page[i].Key) {
				return nil
			}
		}
		if cursor = next; next == 0 {
			return nil
		}
	}
}

// keyOverhead is the memory of a key besides its bytes.
const keyOverhead = 32

// errQueuedScan refuses to look at all keys while some are locked.
const errQueuedScan command.Error = "ERR CLUSTER COUNTKEYSINSLOT and GETKEYSINSLOT are not allowed within MULTI or a script"

// replyCountKeys is CLUSTER COUNTKEYSINSLOT.
func replyCountKeys(n *Node, c *command.Call) error {
	slot, err := c.Args.ParseInt(2)
	switch {
	case err != nil:
		return err
	case slot < 0 || slot >= Slots:
		return command.Error("ERR Invalid slot")
	}
	count := 0
	err = n.eachKeyInSlot(c, slot, func(string) bool { count++; return true })
	return c.Int(count, err)
}

// replyGetKeys is CLUSTER GETKEYSINSLOT.
func replyGetKeys(n *Node, c *command.Call) error {
	slot, ok := number.ParseInt(c.Arg(2))
	most, okCount := number.ParseInt(c.Arg(3))
	switch {
	case !ok || !okCount:
		return command.ErrNotInteger
	case slot < 0 || slot >= Slots || most < 0:
		return command.Error("ERR Invalid slot or number of keys")
	}
	var keys []string
	size := 0
	err := n.eachKeyInSlot(c, slot, func(key string) bool {
		if int64(len(keys)) < most {
			keys = append(keys, key)
			size += len(key) + keyOverhead
		}
		return int64(len(keys)) < most && size <= n.MaxReply
	})
	if err != nil {
		return err
	}
	return c.Names(keys)
}

// ofThisNode replies with a value if argument 2 is the id of this node.
func ofThisNode(value any) func(*Node, *command.Call) error {
	return func(n *Node, c *command.Call) error {
		if string(c.Arg(2)) != n.id("node") {
			return command.Errorf("ERR Unknown node %s", command.Quoted(c.Arg(2)))
		}
		return c.Reply(value)
	}
}
