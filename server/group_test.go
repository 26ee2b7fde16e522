package server_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/group"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
	"github.com/stavedb/stave/server/internal/cluster"
)

// register is a service of records in memory.
type register struct {
	mu      sync.Mutex // guards the rest
	record  group.Versioned
	changed chan struct{} // closed at the next change
}

func newRegister() *register { return &register{changed: make(chan struct{})} }

func (r *register) Read(context.Context) (group.Versioned, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record, nil
}

func (r *register) Swap(_ context.Context, s group.Swap) (group.Versioned, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.record.Version == s.If {
		r.record = group.Versioned{Version: s.If + 1, Record: s.Record}
		close(r.changed)
		r.changed = make(chan struct{})
	}
	return r.record, nil
}

func (r *register) Watch(ctx context.Context, fn func(group.Versioned)) {
	for ctx.Err() == nil {
		r.mu.Lock()
		v, changed := r.record, r.changed
		r.mu.Unlock()
		if v.Version > 0 {
			fn(v)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// groupMember is a server of a group, which can be stopped and started again.
type groupMember struct {
	t       *testing.T
	group   string // "" for g
	slots   string
	id      string
	address string
	records group.Service
	options server.Options
	silence time.Duration // Group.Silence; 0: so long that only what a test does makes another one take over
	strict  bool
	sync    db.SyncMode
	fs      vfs.FS
	clock   func() time.Time // nil: the machine's
	server  *server.Server
	stop    func() error
}

// startGroup starts servers of a group on file systems of their own, the first of which begins it.
func startGroup(t *testing.T, n int, o server.Options) (records *register, members []*groupMember) {
	t.Helper()
	return startGroupOf(t, n, o, func(*groupMember) {})
}

// startGroupOf is startGroup of members that are changed before they start.
func startGroupOf(t *testing.T, n int, o server.Options, change func(*groupMember)) (records *register, members []*groupMember) {
	t.Helper()
	records = newRegister()
	for i := range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		m := &groupMember{t: t, id: string(rune('a' + i)), address: ln.Addr().String(), records: records, options: o, sync: db.SyncNone, fs: vfs.NewMem()}
		change(m)
		m.start(ln, i == 0)
		members = append(members, m)
		t.Cleanup(m.end)
	}
	return records, members
}

func (m *groupMember) start(ln net.Listener, bootstrap bool) {
	m.t.Helper()
	store, err := db.Open("d", seam.With(linearOptions(m.fs, m.sync), seam.Options{FS: m.fs, YieldEvery: 1, Clock: m.clock}))
	if err != nil {
		m.t.Fatal(err)
	}
	o := m.options
	o.Group = &server.Group{Name: cmp.Or(m.group, "g"), Slots: m.slots, ID: m.id, Address: m.address, Records: m.records, Bootstrap: bootstrap, StrictReads: m.strict, Silence: cmp.Or(m.silence, 2*time.Second)}
	if m.server, err = server.New(store, &o); err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.server.Serve(ctx, ln) }()
	m.stop = func() error { cancel(); return errors.Join(<-done, store.Close()) }
}

// again starts it where it was.
func (m *groupMember) again() {
	m.t.Helper()
	ln, err := net.Listen("tcp", m.address)
	if err != nil {
		m.t.Fatal(err)
	}
	m.start(ln, false)
}

func (m *groupMember) end() {
	if m.stop == nil {
		return
	}
	if err := m.stop(); err != nil {
		m.t.Errorf("%s: %v", m.id, err)
	}
	m.stop = nil
}

// do does commands on a connection of their own, and returns the replies.
func (m *groupMember) do(words string) string {
	c, err := net.DialTimeout("tcp", m.address, time.Second)
	if err != nil {
		return "-" + err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprintf(c, "%s\r\n", words); err != nil {
		return "-" + err.Error()
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return "-" + err.Error()
	}
	replies, err := io.ReadAll(c)
	if err != nil {
		return "-" + err.Error()
	}
	return string(replies)
}

// eventually wants a condition to hold within a minute.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: " + what)
		}
	}
}

// inSync are the ids of those in sync.
func (r *register) inSync() (ids []string) {
	v, _ := r.Read(context.Background())
	for _, m := range v.InSync {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}

func (r *register) primaryOf(members []*groupMember) *groupMember {
	v, _ := r.Read(context.Background())
	i := slices.IndexFunc(members, func(m *groupMember) bool { return m.id == v.Primary })
	return members[max(i, 0)]
}

// TestGroup: three servers become a group, the primary goes and another one takes over with all that was acknowledged, and the first one
// comes back.
func TestGroup(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		records, members := startGroupOf(t, 3, server.Options{Transport: transport}, func(m *groupMember) { m.silence = 500 * time.Millisecond })
		eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 3 })
		for round := range 4 {
			for i := range 50 {
				key := fmt.Sprintf("k%d:%d", round, i)
				eventually(t, "a write is acknowledged", func() bool { return records.primaryOf(members).do("SET "+key+" v") == "+OK\r\n" })
			}
			primary := records.primaryOf(members)
			others := slices.DeleteFunc(slices.Clone(members), func(m *groupMember) bool { return m == primary })
			for _, m := range others {
				if got := m.do("SET k v"); !strings.HasPrefix(got, "-READONLY") && records.primaryOf(members) == primary {
					t.Errorf("a member that is not the primary replies %q to a write", got)
				}
			}
			primary.end()
			eventually(t, "another one takes over", func() bool { return records.primaryOf(members) != primary })
			next := records.primaryOf(members)
			for r := range round + 1 {
				for i := range 50 {
					key := fmt.Sprintf("k%d:%d", r, i)
					got := ""
					eventually(t, "a read is answered", func() bool { got = next.do("GET " + key); return !strings.HasPrefix(got, "-") })
					if got != "$1\r\nv\r\n" {
						t.Fatalf("%s was acknowledged, and %s has %q", key, next.id, got)
					}
				}
			}
			primary.again()
			eventually(t, "the first one is in sync again", func() bool { return len(records.inSync()) == 3 })
		}
	})
}

// TestGroupMap: in cluster mode each member says who the primary is, and sends clients there.
func TestGroupMap(t *testing.T) {
	records, members := startGroup(t, 3, server.Options{Cluster: true})
	eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 3 })
	eventually(t, "a write is acknowledged", func() bool { return members[0].do("SET k v") == "+OK\r\n" })
	moved := "-MOVED 7629 " + members[0].address + "\r\n"
	id := func(m *groupMember) string { return cluster.ID("node g " + m.id) }
	for _, m := range members[1:] {
		eventually(t, "a member has the write", func() bool { return m.do("READONLY\r\nGET k") == "+OK\r\n$1\r\nv\r\n" })
		for _, request := range []string{"GET k", "SET k v", "READONLY\r\nSET k v", "MULTI\r\nGET k", "EVAL return(1) 1 k", "SSUBSCRIBE k"} {
			if got := m.do(request); !strings.HasSuffix(got, moved) {
				t.Errorf("%s replies %q to %q", m.id, got, request)
			}
		}
		for request, want := range map[string]string{
			"DBSIZE": ":1\r\n", "FLUSHALL": "-READONLY", "CLUSTER MYID": "$40\r\n" + id(m), "MGET k l": "-CROSSSLOT", "READONLY\r\nEXISTS k": "+OK\r\n:1",
			"CLUSTER REPLICAS " + id(m): "-ERR The specified node is not a master",
		} {
			if got := m.do(request); !strings.HasPrefix(got, want) {
				t.Errorf("%s replies %q to %q", m.id, got, request)
			}
		}
		if got := m.do("CLUSTER INFO"); !strings.Contains(got, "cluster_state:ok\r\n") || !strings.Contains(got, "cluster_known_nodes:3\r\n") {
			t.Errorf("%s: %s", m.id, got)
		}
	}
	for _, m := range members {
		nodes := m.do("CLUSTER NODES")
		for _, other := range members {
			flags, rest := "slave "+id(members[0]), ""
			if other == members[0] {
				flags, rest = "master -", " 0-16383"
			}
			if other == m {
				flags = "myself," + flags
			}
			_, port, _ := net.SplitHostPort(other.address)
			n, _ := strconv.Atoi(port)
			want := fmt.Sprintf("%s %s@%d %s 0 0 1 connected%s\n", id(other), other.address, n+10000, flags, rest)
			if !strings.Contains(nodes, want) {
				t.Errorf("%s: %q is not among %q", m.id, want, nodes)
			}
		}
		slots := m.do("CLUSTER SLOTS")
		if !strings.HasPrefix(slots, "*1\r\n*5\r\n:0\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:") || strings.Index(slots, id(members[0])) > strings.Index(slots, id(members[1])) {
			t.Errorf("%s: %q", m.id, slots)
		}
		shards := m.do("CLUSTER SHARDS")
		if strings.Count(shards, "$7\r\nreplica\r\n") != 2 || strings.Count(shards, "$6\r\nmaster\r\n") != 1 {
			t.Errorf("%s: %q", m.id, shards)
		}
	}
	members[0].end()
	eventually(t, "the others say that there is another primary", func() bool {
		next := records.primaryOf(members)
		if next == members[0] || next.do("GET k") != "$1\r\nv\r\n" {
			return false
		}
		other := members[3-slices.Index(members, next)]
		return other.do("GET k") == "-MOVED 7629 "+next.address+"\r\n"
	})
}

// TestGroupClock: what the primary has shown as expired is not shown by the next one, whose clock is behind.
func TestGroupClock(t *testing.T) {
	records, members := startGroupOf(t, 2, server.Options{Debug: true}, func(m *groupMember) {
		if m.id == "b" {
			m.clock = func() time.Time { return time.Now().Add(-time.Hour) }
		}
	})
	eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 2 })
	eventually(t, "a write is acknowledged", func() bool { return members[0].do("SET k v PX 50") == "+OK\r\n" })
	if got := members[0].do("SET later v PX 7200000"); got != "+OK\r\n" {
		t.Error(got)
	}
	if got := members[0].do("DEBUG SET-ACTIVE-EXPIRE 0"); got != "+OK\r\n" {
		t.Error(got)
	}
	time.Sleep(100 * time.Millisecond)
	if got := members[0].do("GET k"); got != "$-1\r\n" {
		t.Errorf("the primary shows what has expired: %q", got)
	}
	time.Sleep(200 * time.Millisecond) // until the other one has heard the clock
	members[0].end()
	got := ""
	eventually(t, "the other one serves as primary", func() bool {
		if !strings.Contains(members[1].do("ROLE"), "master") {
			return false
		}
		got = members[1].do("GET k")
		return !strings.HasPrefix(got, "-")
	})
	if later := members[1].do("GET later"); got != "$-1\r\n" || later != "$1\r\nv\r\n" {
		t.Errorf("the next primary shows %q of what has expired, %q of what has not", got, later)
	}
}

// TestGroupTooFew: what was written is not acknowledged when fewer members have it than a write needs, though those that lack it are in
// sync no more.
func TestGroupTooFew(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		l := &linearMembers{t: t, rng: rand.New(rand.NewPCG(1, 1)), size: 2, transport: transport, silence: 2 * time.Second}
		l.start()
		a, b := l.members[0], l.members[1]
		a.server.Gate().SetPatience(2 * time.Second)
		eventually(t, "a write is acknowledged", func() bool { return a.do("SET k v") == "+OK\r\n" })
		a.relay.hold(true) // b hears nothing; the test asks a itself
		b.line.setDown(true)
		c, err := net.Dial("tcp", a.relay.target())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("SET k new\r\n")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the other one is not in sync", func() bool { return len(l.records.inSync()) == 1 })
		read, err := net.Dial("tcp", a.relay.target())
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		if _, err := read.Write([]byte("SET other v\r\n")); err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct {
			conn net.Conn
			code string
		}{{read, "-NOREPLICAS "}, {c, "-UNKNOWNOUTCOME "}} {
			reply := make([]byte, len(want.code))
			_ = want.conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.ReadFull(want.conn, reply); err != nil || string(reply) != want.code {
				t.Errorf("%q, %v; want %s", reply, err, want.code)
			}
		}
		a.relay.hold(false)
		b.line.setDown(false)
		eventually(t, "the write is shown when both have it", func() bool { return a.do("GET k") == "$3\r\nnew\r\n" })
	})
}

// TestGroupStrictReads: a strict read is answered when the other member has acknowledged what came after it, though the primary has the
// lease. Others are answered at once.
func TestGroupStrictReads(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		for _, strict := range []bool{true, false} {
			l := &linearMembers{t: t, rng: rand.New(rand.NewPCG(1, 1)), size: 2, transport: transport, strict: strict, silence: 2 * time.Second}
			l.start()
			a := l.members[0]
			eventually(t, "a write is acknowledged", func() bool { return a.do("SET k v") == "+OK\r\n" })
			c := dial(t, a.relay.target())
			for _, request := range []struct{ words, want string }{{"GET k", "$1\r\nv\r\n"}, {"EVAL return(1) 0", ":1\r\n"}, {"DBSIZE", ":1\r\n"}} {
				a.relay.hold(true)
				c.send(request.words + "\r\n")
				if strict {
					c.isSilent("a strict " + request.words)
					a.relay.hold(false)
				}
				c.expect(request.want)
				a.relay.hold(false)
			}
		}
	})
}

// TestGroupGreeting: only the primary is followed, by a member of its group that knows its term.
func TestGroupGreeting(t *testing.T) {
	records, members := startGroup(t, 2, server.Options{})
	eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 2 })
	for _, greeting := range []struct {
		to         *groupMember
		text, want string
	}{
		{members[0], "g x 1 1 h:1", "+OK"}, {members[1], "g x 1 1 h:1", "-ERR this server is not the primary"}, {members[0], "g x 1 2 h:1", "-ERR this server is not the primary"},
		{members[0], "other x 1 1 h:1", "-ERR this server is a member of another group"}, {members[0], "g a 1 1 h:1", "-ERR this server is the member a"},
		{members[0], "g x 1 1", "-ERR the words"},
	} {
		if got := greeting.to.do("REPLCONF group \"" + greeting.text + "\""); !strings.HasPrefix(got, greeting.want) {
			t.Errorf("%s replies %q to %q", greeting.to.id, got, greeting.text)
		}
	}
	if info := members[1].do("INFO replication"); !strings.Contains(info, "group_role:member\r\ngroup_term:1\r\ngroup_primary:a\r\ngroup_in_sync:a,b\r\n") {
		t.Error(info)
	}
	_, id, _ := strings.Cut(members[1].do("INFO replication"), "master_replid:")
	if got := members[1].do("REPLCONF capa eof\r\nPSYNC " + id[:40] + " 1 FAILOVER"); !strings.HasPrefix(got, "+OK\r\n-ERR This server is a member of a group") {
		t.Errorf("a member that is asked to take over: %q", got)
	}
	for _, request := range []string{"REPLICAOF no one", "REPLICAOF 127.0.0.1 1", "FAILOVER", "CONFIG SET appendfsync always"} {
		if got := members[0].do(request); !strings.Contains(got, "group") {
			t.Errorf("%q to %s", got, request)
		}
	}
}

// TestGroupOptions: what makes no sense is refused.
func TestGroupOptions(t *testing.T) {
	good := server.Group{Name: "g", ID: "a", Address: "h:1", Records: newRegister()}
	for want, change := range map[string]func(*server.Group){
		"Group.Name":      func(g *server.Group) { g.Name = "a b" },
		"Group.ID":        func(g *server.Group) { g.ID = "" },
		"Group.Address":   func(g *server.Group) { g.Address = ":1" },
		"Group.Records":   func(g *server.Group) { g.Records = nil },
		"Group.MinInSync": func(g *server.Group) { g.MinInSync = -1 },
		"Group.Silence":   func(g *server.Group) { g.Silence = time.Millisecond },
		"Group.Patience":  func(g *server.Group) { g.Patience = time.Second },
	} {
		g := good
		change(&g)
		if _, err := server.New(openStore(t), &server.Options{Group: &g}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := server.New(openStore(t), &server.Options{Group: &good}); err != nil {
		t.Error(err)
	}
	config := server.NewConfig()
	if err := config.Set("replicaof", "h 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := server.New(openStore(t), &server.Options{Group: &good, Config: config}); err == nil || !strings.Contains(err.Error(), "replicaof") {
		t.Error(err)
	}
}

// TestGroupBetween: a server whose store has been a primary's shows nothing of that before it follows another one, also while it is about
// to: somebody has a key locked.
func TestGroupBetween(t *testing.T) {
	store := openStore(t)
	v := newServer(t, store, &server.Options{})
	v.JoinGroup() // which has not learned anything
	answer := func(request string) string {
		s, got := v.NewSession(), make(chan string, 1)
		go func() { got <- ask(s, request+"\r\n"); s.Close() }()
		select {
		case reply := <-got:
			return reply
		case <-time.After(10 * time.Second):
			return "nothing"
		}
	}
	if got := answer("GET k"); !strings.HasPrefix(got, "-CLUSTERDOWN") {
		t.Errorf("%q before it has learned who is the primary", got)
	}
	locked, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- store.UpdateKeys([]string{"locked"}, func(*db.Tx) error { close(locked); <-release; return nil })
	}()
	<-locked
	replied := make(chan string, 1)
	go func() { replied <- answer("REPLICAOF 127.0.0.1 1") }()
	eventually(t, "it is about to follow", v.IsReplica)
	for _, request := range []string{"GET k", "DBSIZE", "EVAL return(1) 0"} {
		if got := answer(request); !strings.HasPrefix(got, "-CLUSTERDOWN") {
			t.Errorf("%q to %s before it follows", got, request)
		}
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := <-replied; got != "+OK\r\n" {
		t.Error(got)
	}
	if got := answer("GET k"); got != "$-1\r\n" {
		t.Errorf("%q when it follows", got)
	}
}

// TestGroupFields: deadlines of fields, which replicas are not told of by default, are the group's.
func TestGroupFields(t *testing.T) {
	records, members := startGroup(t, 2, server.Options{})
	eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 2 })
	for _, request := range []struct{ words, want string }{{"HSET h f v", ":1\r\n"}, {"HPEXPIRE h 600000 FIELDS 1 f", "*1\r\n:1\r\n"}} {
		eventually(t, request.words+" is acknowledged", func() bool { return members[0].do(request.words) == request.want })
	}
	if got := members[1].do("HPTTL h FIELDS 1 f"); !strings.HasPrefix(got, "*1\r\n:") || strings.Contains(got, "-") {
		t.Errorf("the other member has %q", got)
	}
}

// TestGroupDiverged: a member that cannot do what the primary has done acknowledges nothing of that, and loads everything.
func TestGroupDiverged(t *testing.T) {
	records, members := startGroup(t, 2, server.Options{})
	eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 2 })
	if got := members[1].do("CONFIG SET replica-ignore-errors yes"); got != "+OK\r\n" {
		t.Error(got)
	}
	full := func() string {
		_, n, _ := strings.Cut(members[1].do("INFO replication"), "replica_full_syncs:")
		n, _, _ = strings.Cut(n, "\r\n")
		return n
	}
	before := full()
	members[0].server.PublishCommand("LSET", "missing", "7", "v")
	eventually(t, "everything is loaded", func() bool { return full() > before })
	eventually(t, "all are in sync again", func() bool { return len(records.inSync()) == 2 && members[0].do("SET k v") == "+OK\r\n" })
	if got := members[1].do("INFO replication"); !strings.Contains(got, "replica_ignored_errors:0\r\n") {
		t.Errorf("a member has skipped a command: %s", got)
	}
}

// TestGroupRewrite: CONFIG REWRITE leaves out whom the group has a member follow: it starts with that file again.
func TestGroupRewrite(t *testing.T) {
	records, members := startGroup(t, 1, server.Options{})
	file := filepath.Join(t.TempDir(), "stave.conf")
	if err := os.WriteFile(file, []byte("maxclients 100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &groupMember{t: t, id: "b", sync: db.SyncNone, address: ln.Addr().String(), records: records, fs: vfs.NewMem()}
	load := func() {
		b.options.Config = server.NewConfig()
		if _, err := b.options.Config.Load(file); err != nil {
			t.Fatal(err)
		}
	}
	load()
	b.start(ln, false)
	t.Cleanup(b.end)
	eventually(t, "it is in sync", func() bool { return len(records.inSync()) == 2 })
	if got := b.do("CONFIG SET maxclients 200\r\nCONFIG REWRITE"); got != "+OK\r\n+OK\r\n" {
		t.Fatal(got)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "\nreplicaof ") {
		t.Errorf("%s, %v", text, err)
	}
	b.end()
	load()
	b.again()
	eventually(t, "a write is acknowledged", func() bool { return members[0].do("SET k v") == "+OK\r\n" })
}

// TestGroupFailedLog: a primary whose log has failed yields to another one, and a member whose log has failed is not in sync any more:
// what it has applied is not on its disk.
func TestGroupFailedLog(t *testing.T) {
	records := newRegister()
	var members []*groupMember
	var disks []*vfstest.Fault
	for i := range 3 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		disk := vfstest.NewFault(vfs.NewMem())
		m := &groupMember{t: t, id: string(rune('a' + i)), address: ln.Addr().String(), records: records, sync: db.SyncAlways, fs: disk}
		m.start(ln, i == 0)
		t.Cleanup(func() { _ = m.stop() }) // its store has failed
		members, disks = append(members, m), append(disks, disk)
	}
	eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 3 })
	disks[2].Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Err: syscall.EIO})
	eventually(t, "a write is acknowledged", func() bool { return members[0].do("SET k v") == "+OK\r\n" })
	eventually(t, "the one that could not sync is not in sync", func() bool { return slices.Equal(records.inSync(), []string{"a", "b"}) })
	time.Sleep(500 * time.Millisecond)
	if got := records.inSync(); slices.Contains(got, "c") {
		t.Errorf("it comes back, though its log has failed: %v", got)
	}
	disks[0].Inject(vfstest.Rule{Ops: []vfstest.Op{vfstest.OpSync}, Err: syscall.EIO})
	if got := members[0].do("SET k new"); strings.HasPrefix(got, "+") {
		t.Errorf("a write is acknowledged that could not be synced: %q", got)
	}
	eventually(t, "another one takes over", func() bool { return records.primaryOf(members) == members[1] })
}

// TestGroupWithoutAddress: a member that cannot follow, as nobody says where the primary is, says so once.
func TestGroupWithoutAddress(t *testing.T) {
	records := newRegister()
	if _, err := records.Swap(t.Context(), group.Swap{Record: group.Record{Term: 1, Primary: "x", InSync: []group.Member{{ID: "x"}}}}); err != nil {
		t.Fatal(err)
	}
	var log lines
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &groupMember{t: t, id: "a", address: ln.Addr().String(), records: records, sync: db.SyncNone, fs: vfs.NewMem()}
	m.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	m.start(ln, false)
	t.Cleanup(m.end)
	eventually(t, "it says so", func() bool { return log.count("cannot play its part") > 0 })
	time.Sleep(time.Second)
	if n := log.count("cannot play its part"); n != 1 {
		t.Errorf("it says so %d times", n)
	}
}

// lines are those of a log.
type lines struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// TestGroupEnds: a store whose server has ended lets keys expire, whatever that was in its group.
func TestGroupEnds(t *testing.T) {
	store := openStore(t)
	v, err := server.New(store, &server.Options{Group: &server.Group{Name: "g", ID: "a", Address: "127.0.0.1:1", Records: newRegister()}})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := v.Serve(ctx, ln); err != nil {
		t.Fatal(err)
	}
	if err := store.Update(func(tx *db.Tx) error {
		if err := tx.String("k").Put([]byte("v")); err != nil {
			return err
		}
		_, err := tx.Key("k").ExpireAt(time.Now().Add(time.Millisecond))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key has been deleted", func() bool { return store.Stats().Keys == 0 })
}

// witness is what a member says of itself.
func (m *groupMember) witness() (w group.Witness) {
	m.t.Helper()
	field := func(name string) string {
		_, text, ok := strings.Cut(m.do("INFO replication"), "\r\n"+name+":")
		if text, _, _ = strings.Cut(text, "\r\n"); !ok {
			m.t.Errorf("%s has no %s", m.id, name)
		}
		return text
	}
	var err error
	w.ID = field("group_id")
	if w.Incarnation, err = strconv.ParseUint(field("group_incarnation"), 10, 64); err != nil {
		m.t.Error(err)
	}
	if w.Noted, err = group.ParseNoted([]byte(field("group_noted"))); err != nil {
		m.t.Error(err)
	}
	return w
}

// TestGroupRecover: where the record is gone, or is one of the past, members take no writes, not even one that is told to begin the group. The
// record that is made of what they have noted has them serve everything again.
func TestGroupRecover(t *testing.T) {
	records, members := startGroupOf(t, 3, server.Options{}, func(m *groupMember) { m.silence = 500 * time.Millisecond })
	eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 3 })
	past, _ := records.Read(t.Context())
	first := records.primaryOf(members)
	first.end()
	eventually(t, "a write is acknowledged by another one", func() bool {
		p := records.primaryOf(members)
		return p != first && p.do("SET k v") == "+OK\r\n"
	})
	for _, m := range members {
		m.end()
	}
	set := func(v group.Versioned) {
		records.mu.Lock()
		defer records.mu.Unlock()
		records.record = v
	}
	for round, lost := range []group.Versioned{{}, past} {
		last, _ := records.Read(t.Context())
		set(lost)
		var log lines
		var witnesses []group.Witness
		for _, m := range members {
			ln, err := net.Listen("tcp", m.address)
			if err != nil {
				t.Fatal(err)
			}
			m.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
			m.start(ln, true)
		}
		time.Sleep(1500 * time.Millisecond)
		for _, m := range members {
			if got := m.do("SET k lost"); !strings.HasPrefix(got, "-CLUSTERDOWN") && !strings.HasPrefix(got, "-READONLY") {
				t.Errorf("%s replies %q to a write, and the record is %+v", m.id, got, lost)
			}
			if m != first || round > 0 { // it was not in sync
				witnesses = append(witnesses, m.witness())
			}
		}
		if v, _ := records.Read(t.Context()); v.Version != lost.Version {
			t.Errorf("the record is %+v", v)
		}
		if n := log.count("cannot be read"); n < len(members)-1 || n > len(members) {
			t.Errorf("%d lines of %d members say so", n, len(members))
		}
		r, err := group.Recover(witnesses)
		if err != nil {
			t.Fatalf("%v, of %+v; it was %+v", err, witnesses, last)
		}
		set(group.Versioned{})
		if _, err := records.Swap(t.Context(), group.Swap{Record: r}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a read is answered", func() bool { return records.primaryOf(members).do("GET k") == "$1\r\nv\r\n" })
		eventually(t, "a write is acknowledged", func() bool { return records.primaryOf(members).do("SET k v") == "+OK\r\n" })
		eventually(t, "all are in sync", func() bool { return len(records.inSync()) == 3 })
		for _, m := range members {
			m.end()
		}
	}
}
