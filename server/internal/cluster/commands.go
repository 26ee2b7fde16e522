package cluster

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/number"
	"github.com/stavedb/stave/server/command"
)

const (
	errNoCluster    command.Error = "ERR This instance has cluster support disabled"
	errFixedCluster command.Error = "ERR This cluster cannot be changed by commands: a server owns all slots, or groups those that they began with"
)

// Node is a server of the cluster as clients find it.
type Node struct {
	Name         string // of which its id is made
	IP, Hostname string
	Port         int
	BusPort      int // where nothing listens
	IsPrimary    bool
	IsSelf       bool // it is the server that is asked
}

// ID is a text, which is the same on all nodes and after each start, as Redis has ids: 40 digits.
func ID(of string) string {
	sum := sha1.Sum([]byte(of))
	return hex.EncodeToString(sum[:])
}

func (n *Node) id() string { return ID("node " + n.Name) }

// Shard is a group of servers with the same keys, or the only server.
type Shard struct {
	Name  string      // of which its id is made
	Slots group.Slots // of its keys
	Nodes []Node      // the primary, if there is one, is the first
	Epoch uint64      // grows with each primary
}

// View is the cluster as a server of it knows it, and one of its clients.
type View struct {
	Enabled   bool // cluster-enabled
	Store     *db.Store
	Shards    []Shard      // that of the server is the first
	IsDown    bool         // the server serves nothing
	Preferred string       // cluster-preferred-endpoint-type: how nodes are named to clients
	IsTLS     bool         // the client's connection is encrypted
	ReadOnly  *atomic.Bool // what READONLY has set
	Redirect  bool         // the client is sent to a replica's master, unless it has set that
	MaxReply  int          // bytes
}

// self is the server that is asked.
func (v *View) self() *Node {
	nodes := v.Shards[0].Nodes
	return &nodes[slices.IndexFunc(nodes, func(n Node) bool { return n.IsSelf })]
}

// primary is the node that owns the slots; nil if there is none at the moment.
func (s *Shard) primary() *Node {
	if len(s.Nodes) > 0 && s.Nodes[0].IsPrimary {
		return &s.Nodes[0]
	}
	return nil
}

// owned are the slots that have an owner: those of a primary that is known.
func (s *Shard) owned() group.Slots {
	if s.primary() == nil {
		return nil
	}
	return s.Slots
}

// preferred is how a node is named to clients; ok is false if they shall use the
// address that they know.
func (v *View) preferred(n *Node) (name string, ok bool) {
	switch {
	case v.Preferred == "unknown-endpoint":
		return "", false
	case v.Preferred == "hostname" && n.Hostname != "":
		return n.Hostname, true
	case v.Preferred == "hostname":
		return "?", true
	}
	return n.IP, true
}

// refuseChange answers what would change the cluster.
func refuseChange(*View, *command.Call) error { return errFixedCluster }

const (
	reads   = command.Stale
	admin   = command.Admin | command.Stale
	changes = admin | command.NoAsyncLoading
)

// asker is what finds the cluster at each call.
type asker func(*command.Call) View

// inCluster makes a handler that needs cluster mode.
func (at asker) inCluster(run func(*View, *command.Call) error) func(*command.Call) error {
	return func(c *command.Call) error {
		v := at(c)
		if !v.Enabled {
			return errNoCluster
		}
		return run(&v, c)
	}
}

// setReadOnly makes a handler of READONLY or READWRITE, which mean something in cluster mode and after CLIENT CAPA redirect.
func (at asker) setReadOnly(to bool) func(*command.Call) error {
	return func(c *command.Call) error {
		v := at(c)
		if !v.Enabled && !v.Redirect {
			return errNoCluster
		}
		v.ReadOnly.Store(to)
		return c.OK()
	}
}

// change is a row of CLUSTER that would change the cluster.
func (at asker) change(name string, arity int, flags command.Flag) *command.Command {
	return at.question(name, arity, flags, refuseChange)
}

// question is a row of CLUSTER that has an answer.
func (at asker) question(name string, arity int, flags command.Flag, run func(*View, *command.Call) error) *command.Command {
	return &command.Command{Name: "cluster|" + name, Arity: arity, Flags: flags, Run: at.inCluster(run)}
}

// Commands are CLUSTER and its like. view is asked at each call.
func Commands(view func(*command.Call) View) []*command.Command {
	at := asker(view)
	return command.InGroup(command.GroupCluster, []*command.Command{
		{Name: "cluster", Arity: -2, Subcommands: at.subcommands()},
		{Name: "readonly", Arity: 1, Flags: command.AnyState | command.Fast | command.ConnectionCategory,
			Run: at.setReadOnly(true)},
		{Name: "readwrite", Arity: 1, Flags: command.AnyState | command.Fast | command.ConnectionCategory,
			Run: at.setReadOnly(false)},
		{Name: "asking", Arity: 1, Flags: command.Fast | command.ConnectionCategory,
			Run: at.inCluster(func(_ *View, c *command.Call) error { return c.OK() })},
	})
}

// subcommands are those of CLUSTER.
func (at asker) subcommands() []*command.Command {
	return []*command.Command{
		at.change("addslots", -3, changes),
		at.change("addslotsrange", -4, changes),
		at.change("bumpepoch", 2, changes),
		at.question("count-failure-reports", 3, admin, replyFailures),
		at.question("countkeysinslot", 3, reads, replyCountKeys),
		at.change("delslots", -3, changes),
		at.change("delslotsrange", -4, changes),
		at.change("failover", -2, changes),
		at.change("flushslots", 2, changes),
		at.change("forget", 3, changes),
		at.question("getkeysinslot", 4, reads, replyGetKeys),
		at.question("help", 2, command.AnyState, func(_ *View, c *command.Call) error { return command.Help(c) }),
		at.question("info", 2, reads, replyInfo),
		at.question("keyslot", 3, reads, func(_ *View, c *command.Call) error { return c.Int(SlotOf(c.Arg(2)), nil) }),
		at.question("links", 2, reads, func(_ *View, c *command.Call) error { c.Out.Array(0); return nil }),
		at.change("meet", -4, changes),
		at.question("myid", 2, reads, func(v *View, c *command.Call) error { c.Out.BulkString(v.self().id()); return nil }),
		at.question("myshardid", 2, reads, func(v *View, c *command.Call) error { c.Out.BulkString(v.Shards[0].id()); return nil }),
		at.question("nodes", 2, reads, replyNodes),
		at.question("replicas", 3, admin, replyReplicas),
		at.change("replicate", 3, changes),
		at.change("reset", -2, admin|command.NoScript),
		at.question("saveconfig", 2, changes, func(_ *View, c *command.Call) error { return c.OK() }),
		at.change("set-config-epoch", 3, changes),
		at.change("setslot", -4, changes),
		at.question("shards", 2, reads, replyShards),
		at.question("slaves", 3, admin, replyReplicas),
		at.question("slots", 2, reads, replySlots),
	}
}

// id is that of the shard.
func (s *Shard) id() string { return ID("shard " + s.Name) }

// replyInfo is CLUSTER INFO.
func replyInfo(v *View, c *command.Call) error {
	owned, nodes, size, epoch := 0, 0, 0, uint64(0)
	for i := range v.Shards {
		s := &v.Shards[i]
		if n := s.owned().Count(); n > 0 {
			owned, size = owned+n, size+1
		}
		nodes, epoch = nodes+len(s.Nodes), max(epoch, s.Epoch)
	}
	state := "ok"
	if v.IsDown || owned < Slots {
		state = "fail"
	}
	var text strings.Builder
	for _, field := range []struct {
		name  string
		value any
	}{
		{"state", state}, {"slots_assigned", owned}, {"slots_ok", owned}, {"slots_pfail", 0}, {"slots_fail", 0}, {"known_nodes", nodes}, {"size", size},
		{"current_epoch", epoch}, {"my_epoch", v.Shards[0].Epoch}, {"stats_messages_sent", 0}, {"stats_messages_received", 0},
	} {
		fmt.Fprintf(&text, "cluster_%s:%v\r\n", field.name, field.value)
	}
	text.WriteString("total_cluster_links_buffer_limit_exceeded:0\r\n")
	c.Out.Verbatim("txt", text.String())
	return nil
}

// line is a node of a shard as CLUSTER NODES has it.
func (s *Shard) line(n *Node) string {
	flags, master, slots, hostname := "master", "-", "", ""
	switch p := s.primary(); {
	case n.IsPrimary:
		for _, r := range s.Slots {
			slots += " " + r.String()
		}
	case p != nil:
		flags, master = "slave", p.id()
	default:
		flags = "slave"
	}
	if n.IsSelf {
		flags = "myself," + flags
	}
	if n.Hostname != "" {
		hostname = "," + n.Hostname
	}
	return fmt.Sprintf("%s %s:%d@%d%s %s %s 0 0 %d connected%s", n.id(), n.IP, n.Port, n.BusPort, hostname, flags, master, s.Epoch, slots)
}

// replyNodes is CLUSTER NODES.
func replyNodes(v *View, c *command.Call) error {
	var text strings.Builder
	for i := range v.Shards {
		s := &v.Shards[i]
		for j := range s.Nodes {
			text.WriteString(s.line(&s.Nodes[j]) + "\n")
		}
	}
	c.Out.Verbatim("txt", text.String())
	return nil
}

// replyReplicas is CLUSTER REPLICAS, and SLAVES.
func replyReplicas(v *View, c *command.Call) error {
	s, n, err := v.named(c)
	if err != nil {
		return err
	}
	if !n.IsPrimary {
		return command.Error("ERR The specified node is not a master")
	}
	lines := []any{}
	for i := range s.Nodes {
		if other := &s.Nodes[i]; !other.IsPrimary {
			lines = append(lines, s.line(other))
		}
	}
	return c.Reply(lines)
}

// replyFailures is CLUSTER COUNT-FAILURE-REPORTS: nodes report none.
func replyFailures(v *View, c *command.Call) error {
	if _, _, err := v.named(c); err != nil {
		return err
	}
	return c.Int(0, nil)
}

// named is the node whose id is argument 2, and its shard.
func (v *View) named(c *command.Call) (*Shard, *Node, error) {
	for i := range v.Shards {
		s := &v.Shards[i]
		for j := range s.Nodes {
			if n := &s.Nodes[j]; n.id() == string(c.Arg(2)) {
				return s, n, nil
			}
		}
	}
	return nil, nil, command.Errorf("ERR Unknown node %s", command.Quoted(c.Arg(2)))
}

// replySlots is CLUSTER SLOTS: each range of slots with the nodes of its shard, in their order.
func replySlots(v *View, c *command.Call) error {
	type owned struct {
		group.SlotRange
		nodes []any
	}
	var all []owned
	for i := range v.Shards {
		s := &v.Shards[i]
		nodes := v.located(s)
		for _, r := range s.owned() {
			all = append(all, owned{r, nodes})
		}
	}
	slices.SortFunc(all, func(a, b owned) int { return a.First - b.First })
	reply := make([]any, 0, len(all))
	for _, r := range all {
		reply = append(reply, append([]any{r.First, r.Last}, r.nodes...))
	}
	return c.Reply(reply)
}

// located are the nodes of a shard as CLUSTER SLOTS has them. What the preferred name of a node leaves out follows it.
func (v *View) located(s *Shard) (nodes []any) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		more := []command.Fact{}
		if v.Preferred != "ip" {
			more = append(more, command.Fact{Name: "ip", Value: n.IP})
		}
		if v.Preferred != "hostname" && n.Hostname != "" {
			more = append(more, command.Fact{Name: "hostname", Value: n.Hostname})
		}
		var preferred any
		if name, known := v.preferred(n); known {
			preferred = name
		}
		nodes = append(nodes, []any{preferred, n.Port, n.id(), more})
	}
	return nodes
}

// replyShards is CLUSTER SHARDS.
func replyShards(v *View, c *command.Call) error {
	shards := make([]any, 0, len(v.Shards))
	for i := range v.Shards {
		shards = append(shards, v.described(&v.Shards[i]))
	}
	return c.Reply(shards)
}

// described is a shard as CLUSTER SHARDS has it.
func (v *View) described(s *Shard) []command.Fact {
	port, slots, nodes := "port", []any{}, []any{}
	if v.IsTLS {
		port = "tls-port"
	}
	for _, r := range s.owned() {
		slots = append(slots, r.First, r.Last)
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		name, _ := v.preferred(n)
		role := "replica"
		if n.IsPrimary {
			role = "master"
		}
		node := []command.Fact{{Name: "id", Value: n.id()}, {Name: port, Value: n.Port}, {Name: "ip", Value: n.IP}, {Name: "endpoint", Value: name}}
		if n.Hostname != "" {
			node = append(node, command.Fact{Name: "hostname", Value: n.Hostname})
		}
		nodes = append(nodes, append(node, command.Fact{Name: "role", Value: role}, command.Fact{Name: "replication-offset", Value: 0}, command.Fact{Name: "health", Value: "online"}))
	}
	return []command.Fact{{Name: "slots", Value: slots}, {Name: "nodes", Value: nodes}}
}

// eachKeyInSlot calls fn with the keys of a slot, until it returns false. It looks at all keys, page by page, and so
// without keeping any locked in between.
func (v *View) eachKeyInSlot(c *command.Call, slot int64, fn func(key string) bool) error {
	if c.Queued {
		return errQueuedScan
	}
	space, err := v.Store.Use(0)
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
func replyCountKeys(v *View, c *command.Call) error {
	slot, err := c.Args.ParseInt(2)
	switch {
	case err != nil:
		return err
	case slot < 0 || slot >= Slots:
		return command.Error("ERR Invalid slot")
	}
	count := 0
	err = v.eachKeyInSlot(c, slot, func(string) bool { count++; return true })
	return c.Int(count, err)
}

// replyGetKeys is CLUSTER GETKEYSINSLOT.
func replyGetKeys(v *View, c *command.Call) error {
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
	err := v.eachKeyInSlot(c, slot, func(key string) bool {
		if int64(len(keys)) < most {
			keys = append(keys, key)
			size += len(key) + keyOverhead
		}
		return int64(len(keys)) < most && size <= v.MaxReply
	})
	if err != nil {
		return err
	}
	return c.Names(keys)
}
