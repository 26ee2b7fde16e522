package server_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/internal/cluster"
)

// registers keep the records of several groups in memory.
type registers struct {
	mu     sync.Mutex // guards the rest
	groups map[string]*register
}

// registered is one of them, for its group.
type registered struct {
	*register
	name string
	all  *registers
}

func (r *registers) of(name string) *registered {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups == nil {
		r.groups = make(map[string]*register)
	}
	if r.groups[name] == nil {
		r.groups[name] = newRegister()
	}
	return &registered{r.groups[name], name, r}
}

// remove removes a group that is no more.
func (r *registers) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, name)
}

// others are the records of all groups but one, that have been begun.
func (r *registers) others(name string) map[string]group.Versioned {
	others := make(map[string]group.Versioned)
	for other, of := range r.groups {
		if v, _ := of.Read(context.Background()); other != name && v.Version > 0 {
			others[other] = v
		}
	}
	return others
}

func recordsOf(versioned map[string]group.Versioned) map[string]group.Record {
	records := make(map[string]group.Record)
	for name, v := range versioned {
		records[name] = v.Record
	}
	return records
}

func (r *registered) Swap(ctx context.Context, s group.Swap) (group.Versioned, error) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if v, _ := r.Read(ctx); v.Version == 0 && s.If == 0 {
		if err := group.CheckSlots(s.Record.Slots, recordsOf(r.all.others(r.name))); err != nil {
			return group.Versioned{}, err
		}
	}
	return r.register.Swap(ctx, s)
}

func (r *registered) WatchOthers(ctx context.Context, fn func(map[string]group.Record)) {
	same := func(a, b group.Versioned) bool { return a.Version == b.Version }
	for last := map[string]group.Versioned(nil); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		r.all.mu.Lock()
		now := r.all.others(r.name)
		r.all.mu.Unlock()
		if last == nil || !maps.EqualFunc(now, last, same) {
			fn(recordsOf(now))
		}
		last = now
	}
}

// startShard starts a group of a cluster.
func (r *registers) startShard(t *testing.T, name, slots string, n int, change func(*groupMember)) []*groupMember {
	t.Helper()
	of := r.of(name)
	_, members := startGroupOf(t, n, server.Options{Cluster: true}, func(m *groupMember) {
		m.group, m.slots, m.records = name, slots, of
		change(m)
	})
	eventually(t, "all of "+name+" are in sync", func() bool { return len(of.inSync()) == n })
	return members
}

// keyOf is a key of a slot.
func keyOf(slot int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("k", i); cluster.SlotOf(key) == slot {
			return key
		}
	}
}

// TestGroupSlots: two groups with the slots of a cluster, but for some that nobody has. Each member serves those of its group, and sends clients to
// the primary of the other one.
func TestGroupSlots(t *testing.T) {
	var records registers
	first := records.startShard(t, "g", "0-8191", 2, func(*groupMember) {})
	second := records.startShard(t, "h", "8192-12000,12002-16383", 2, func(m *groupMember) { m.silence = 300 * time.Millisecond })
	const none = 12001
	groups := []struct {
		members []*groupMember
		slot    int
	}{{first, 7629}, {second, 15495}} // of k and of a
	for i, g := range groups {
		other := groups[1-i]
		own, others, nobodys := keyOf(g.slot), keyOf(other.slot), keyOf(none)
		eventually(t, "a write is acknowledged", func() bool { return g.members[0].do("SET "+own+" v") == "+OK\r\n" })
		moved := fmt.Sprintf("-MOVED %d %s\r\n", other.slot, other.members[0].address)
		for _, m := range g.members {
			eventually(t, "a member has the write", func() bool { return m.do("READONLY\r\nGET "+own) == "+OK\r\n$1\r\nv\r\n" })
			eventually(t, "it knows the other group", func() bool { return m.do("GET "+others) == moved })
			for _, request := range []string{
				"GET K", "SET K v", "READONLY\r\nGET K", "READONLY\r\nSET K v", "MULTI\r\nGET K", "EVAL return(1) 1 K", "EVAL_RO return(1) 1 K", "SSUBSCRIBE K", "SPUBLISH K x", "WATCH K", "BLPOP K 1",
				"XREAD BLOCK 1000 STREAMS K $", "DEL K", "RESTORE K 0 x", "DUMP K", "SORT K", "PFCOUNT K", "OBJECT ENCODING K", "FCALL f 1 K", "MGET K {K}2", "MSET K 1 {K}2 1", "GETEX K",
			} {
				if got := m.do(strings.ReplaceAll(request, "K", others)); !strings.HasSuffix(got, moved) {
					t.Errorf("%s %s replies %q to %q of the other group", m.group, m.id, got, request)
				}
				if got := m.do(strings.ReplaceAll(request, "K", nobodys)); !strings.HasSuffix(got, "-CLUSTERDOWN Hash slot not served\r\n") {
					t.Errorf("%s %s replies %q to %q of nobody", m.group, m.id, got, request)
				}
			}
			// What is queued before is refused as a whole, and what has no key is the group's.
			for request, want := range map[string]string{
				"MULTI\r\nGET " + others + "\r\nEXEC": "-EXECABORT", "DBSIZE": ":1\r\n", "KEYS *": "*1\r\n", "SCAN 0": own, fmt.Sprint("CLUSTER COUNTKEYSINSLOT ", g.slot): ":1\r\n",
				fmt.Sprint("CLUSTER COUNTKEYSINSLOT ", other.slot): ":0\r\n", "MGET " + own + " " + others: "-CROSSSLOT", "INFO replication": "group_slots:" + cmp.Or(m.slots, "?") + "\r\n",
				"EVAL \"return(redis.pcall('get','" + others + "').err)\" 0":    "Script attempted to access a non local key in a cluster node",
				"EVAL \"return(redis.pcall('set','" + nobodys + "',1).err)\" 0": "Script attempted to access a non local key in a cluster node",
			} {
				if got := m.do(request); !strings.Contains(got, want) {
					t.Errorf("%s %s replies %q to %q", m.group, m.id, got, request)
				}
			}
			for _, want := range []string{"state:fail", "slots_assigned:16383", "slots_ok:16383", "known_nodes:4", "size:2"} {
				if got := m.do("CLUSTER INFO"); !strings.Contains(got, "cluster_"+want+"\r\n") {
					t.Errorf("%s %s: no %s in %q", m.group, m.id, want, got)
				}
			}
			checkMap(t, m, [][]*groupMember{first, second})
		}
	}
	if got := first[0].do("EVAL \"return(redis.call('get','" + keyOf(7629) + "'))\" 0"); got != "$1\r\nv\r\n" {
		t.Errorf("a script gets %q of a key that it has not declared", got)
	}
	if got := first[0].do("FLUSHALL"); got != "+OK\r\n" {
		t.Error(got)
	}
	if got := second[0].do("DBSIZE"); got != ":1\r\n" {
		t.Errorf("FLUSHALL of another group: %q are left", got)
	}

	// Somebody has the slot, and the others learn of it, and who is the next primary of a group.
	third := records.startShard(t, "i", "12001", 1, func(*groupMember) {})
	eventually(t, "the cluster is whole", func() bool {
		return strings.Contains(first[1].do("CLUSTER INFO"), "cluster_state:ok\r\ncluster_slots_assigned:16384\r\n") && first[1].do("GET "+keyOf(none)) == fmt.Sprintf("-MOVED %d %s\r\n", none, third[0].address)
	})
	second[0].end()
	eventually(t, "the other one takes over", func() bool { return records.of("h").primaryOf(second) == second[1] })
	began := time.Now()
	moved := fmt.Sprintf("-MOVED 15495 %s\r\n", second[1].address)
	eventually(t, "the other groups know it", func() bool {
		return first[0].do("GET a") == moved && first[1].do("READONLY\r\nGET a") == "+OK\r\n"+moved && third[0].do("GET a") == moved
	})
	if v, _ := records.of("h").Read(t.Context()); v.Term != 2 || v.Slots != second[1].slots {
		t.Fatalf("after the takeover: %+v", v)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("after %s", d)
	}
	third[0].end()
	records.remove("i")
	eventually(t, "a group that is removed has no slots", func() bool {
		return first[0].do("GET "+keyOf(none)) == "-CLUSTERDOWN Hash slot not served\r\n" && strings.Contains(first[0].do("CLUSTER INFO"), "cluster_state:fail")
	})
}

// checkMap wants a member to know all groups, whose primary is the first.
func checkMap(t *testing.T, m *groupMember, groups [][]*groupMember) {
	t.Helper()
	nodes, slots, shards := m.do("CLUSTER NODES"), m.do("CLUSTER SLOTS"), m.do("CLUSTER SHARDS")
	id := func(m *groupMember) string { return cluster.ID("node " + m.group + " " + m.id) }
	if n := strings.Count(nodes, "\n") - 2; n != 4 { // of the nodes, beside those of the bulk string
		t.Errorf("%s %s: %d nodes: %q", m.group, m.id, n, nodes)
	}
	var ranges []string
	for _, members := range groups {
		primary := id(members[0])
		own, _ := group.ParseSlots(members[0].slots)
		for _, node := range members {
			flags, rest := "slave "+primary, "\n"
			if node == members[0] {
				flags, rest = "master -", " "+strings.ReplaceAll(members[0].slots, ",", " ")+"\n"
			}
			if node == m {
				flags = "myself," + flags
			}
			if want := " " + flags + " 0 0 1 connected" + rest; !strings.Contains(nodes, want) || !strings.Contains(nodes, id(node)+" "+node.address) {
				t.Errorf("%s %s: %q is not among %q", m.group, m.id, want, nodes)
			}
		}
		var flat []string
		for _, r := range own {
			_, port, _ := net.SplitHostPort(members[0].address)
			ranges = append(ranges, fmt.Sprintf("*4\r\n:%d\r\n:%d\r\n*4\r\n$9\r\n127.0.0.1\r\n:%s\r\n$40\r\n%s", r.First, r.Last, port, primary))
			flat = append(flat, fmt.Sprintf(":%d\r\n:%d\r\n", r.First, r.Last))
		}
		if want := fmt.Sprintf("$5\r\nslots\r\n*%d\r\n%s$5\r\nnodes\r\n*2\r\n", 2*len(own), strings.Join(flat, "")); !strings.Contains(shards, want) {
			t.Errorf("%s %s: %q is not in %q", m.group, m.id, want, shards)
		}
		if got := m.do("CLUSTER REPLICAS " + primary); !strings.HasPrefix(got, "*1\r\n") || !strings.Contains(got, id(members[1])) {
			t.Errorf("%s %s: replicas: %q", m.group, m.id, got)
		}
	}
	// The ranges in their order, the primary of each first.
	for rest := slots; len(ranges) > 0; ranges = ranges[1:] {
		at := strings.Index(rest, ranges[0])
		if at < 0 {
			t.Fatalf("%s %s: %q does not follow in %q", m.group, m.id, ranges[0], slots)
		}
		rest = rest[at:]
	}
}

// TestGroupSlotsRefused: what cannot be a group of the cluster ends with an error that says why.
func TestGroupSlotsRefused(t *testing.T) {
	var records registers
	records.startShard(t, "g", "0-8191", 1, func(*groupMember) {})
	for _, tt := range []struct {
		name, group, slots string
		bootstrap          bool
		cluster            bool
		want               string
	}{
		{"taken", "h", "8191-16383", true, true, "the group h cannot be begun: the slots 8191 are those of the group g"},
		{"all", "h", "", true, false, "the group h cannot be begun: the slots 0-8191 are those of the group g"},
		{"other ones", "g", "0-8190", false, true, "the group g has the slots 0-8191, and the server is told that it has 0-8190"},
		{"other ones, again", "g", "0-16383", true, true, "the group g has the slots 0-8191, and the server is told that it has 0-16383"},
		{"no cluster", "g", "", false, false, "the group g has the slots 0-8191, and clients find the other slots in cluster mode only: the server needs cluster-enabled yes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			g := &server.Group{Name: tt.group, Slots: tt.slots, ID: "z", Address: ln.Addr().String(), Records: records.of(tt.group), Bootstrap: tt.bootstrap}
			if err := server.Serve(ctx, ln, openStore(t), &server.Options{Cluster: tt.cluster, Group: g}); err == nil || !strings.Contains(err.Error(), tt.want) || ctx.Err() != nil {
				t.Errorf("%v, %v", err, ctx.Err())
			}
		})
	}
	if v, _ := records.of("h").Read(t.Context()); v.Version != 0 {
		t.Errorf("h has been begun: %+v", v)
	}
	g := &server.Group{Name: "h", Slots: "9000", ID: "z", Address: "h:1", Records: records.of("h")}
	if _, err := server.New(openStore(t), &server.Options{Group: g}); err == nil || !strings.Contains(err.Error(), "cluster-enabled yes") {
		t.Error(err)
	}
	g.Slots = "9000-"
	if _, err := server.New(openStore(t), &server.Options{Group: g, Cluster: true}); err == nil || !strings.Contains(err.Error(), "Group.Slots") {
		t.Error(err)
	}
}

// TestGroupSlotsClaimedTwice: records that were written by hand. Each server has the slots of its own group, and other ones as all others see it;
// and nobody is sent to where he is.
func TestGroupSlotsClaimedTwice(t *testing.T) {
	var records registers
	put := func(name, slots, address string) {
		t.Helper()
		r := records.of(name)
		v, _ := r.Read(t.Context())
		if _, err := r.register.Swap(t.Context(), group.Swap{If: v.Version, Record: group.Record{
			Term: 1, Primary: "x", InSync: []group.Member{{ID: "x"}}, Addresses: map[string]string{"x": address}, Slots: slots,
		}}); err != nil {
			t.Fatal(err)
		}
	}
	m := records.startShard(t, "g", "90-95", 1, func(*groupMember) {})[0]
	put("e", "0-99,200-299", "e:1")
	put("f", "50-149,300", "f:1")
	put("broken", "?", "broken:1")
	notServed := "-CLUSTERDOWN Hash slot not served\r\n"
	for slot, want := range map[int]string{
		89: "-MOVED 89 e:1\r\n", 90: "$-1\r\n", 95: "$-1\r\n", 96: "-MOVED 96 e:1\r\n", 50: "-MOVED 50 e:1\r\n", 100: "-MOVED 100 f:1\r\n", 149: "-MOVED 149 f:1\r\n",
		150: notServed, 299: "-MOVED 299 e:1\r\n", 300: "-MOVED 300 f:1\r\n", 301: notServed,
	} {
		eventually(t, fmt.Sprintf("%q of slot %d", want, slot), func() bool { return m.do("GET "+keyOf(slot)) == want })
	}
	if got := m.do("CLUSTER INFO"); !strings.Contains(got, "cluster_slots_assigned:251\r\n") || !strings.Contains(got, "cluster_size:3\r\n") {
		t.Error(got)
	}
	put("f", "50-149,300", m.address)
	put("e", "0-99,200-299", "")
	for _, slot := range []int{50, 300} {
		eventually(t, "nobody has the slot who could be asked", func() bool { return m.do("GET "+keyOf(slot)) == notServed })
	}
}
