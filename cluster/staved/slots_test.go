package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/cluster/etcd"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// startGroups starts two groups with the slots of a cluster, whose etcds are in the members of the first one.
func startGroups(t *testing.T, silence time.Duration) (groups [2]*rig) {
	t.Helper()
	base, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	l := &local{dir: t.TempDir(), sync: "interval", base: base, groups: len(groups)}
	var endpoints []string
	for i := range groups {
		groups[i] = &rig{t: t, rng: rand.New(rand.NewPCG(1, uint64(i))), sync: l.sync, own: i == 0, silence: silence}
	}
	for i, id := range l.ids() {
		p := &process{env: []string{"STAVE_CLUSTER_ENABLED=yes"}, id: id, address: local4(base + i), dir: filepath.Join(l.dir, id)}
		p.args = append(l.args(i), "--insync-timeout", silence.String())
		if i < len(localIDs) {
			endpoints = append(endpoints, "http://"+local4(ports(base, i)[2]))
		}
		var more []string
		if i%len(localIDs) == 0 {
			more = []string{"--bootstrap"}
		}
		r := groups[i/len(localIDs)]
		r.add(p, more...)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for i, r := range groups {
		r.records = etcd.New(client, fmt.Sprint("/stave/default/groups/g", i+1))
	}
	for _, r := range groups {
		r.awaitAll()
	}
	return groups
}

// add starts another member.
func (r *rig) add(p *process, more ...string) {
	r.t.Helper()
	err := os.MkdirAll(p.dir, 0o700)
	if err == nil {
		err = p.start(more...)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { p.end(r.t) })
	r.members = append(r.members, p)
}

// redisCLILines has one redis-cli -c do commands, and returns the replies, a line each.
func redisCLILines(ctx context.Context, program, address string, commands []string) (replies []string) {
	host, port, _ := net.SplitHostPort(address)
	cmd := exec.CommandContext(ctx, program, "-c", "-h", host, "-p", port)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	out, _ := cmd.Output()
	for line := range bytes.Lines(out) {
		if text := strings.TrimSpace(string(line)); !strings.HasPrefix(text, "-> Redirected") {
			replies = append(replies, text)
		}
	}
	return replies
}

// TestClientsOfGroups: clients of Redis Cluster write keys of two groups, and read all of them after the primary of one was killed.
func TestClientsOfGroups(t *testing.T) {
	const keys = 1000
	groups := startGroups(t, 300*time.Millisecond)
	var addresses []string
	for _, r := range groups {
		for _, p := range r.members {
			addresses = append(addresses, p.address)
		}
	}
	r := groups[0]
	for _, p := range append(groups[0].members, groups[1].members...) {
		one := newCaller(&rig{t: t, members: []*process{p}}, 1)
		info := ""
		r.eventuallyOr(p.id+" knows the whole cluster", func() bool {
			info = one.does("CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok\r\ncluster_slots_assigned:16384\r\n") && strings.Contains(info, "cluster_known_nodes:6\r\ncluster_size:2\r\n")
		}, func() string { return info })
		one.close()
	}
	clients := []client{goRedis(addresses), rueidisClient(t, addresses)}
	for _, c := range clients {
		defer c.close()
	}
	each := func(c client, what string, do func(ctx context.Context, key string) error) {
		t.Helper()
		for n := range keys {
			key, err := fmt.Sprint(c.name, n), error(nil)
			r.eventuallyOr(what+" of "+c.name, func() bool {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				err = do(ctx, key)
				return err == nil
			}, func() string { return fmt.Sprint(key, ": ", err) })
		}
	}
	for _, c := range clients {
		each(c, "a write is acknowledged", c.set)
	}
	program, errCLI := exec.LookPath("redis-cli")
	cli := func(format string, want func(n int) string) {
		t.Helper()
		if errCLI != nil {
			return
		}
		var commands, got []string
		for n := range keys {
			commands = append(commands, strings.ReplaceAll(format, "N", strconv.Itoa(n)))
		}
		r.eventuallyOr("redis-cli gets what is right", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			got = redisCLILines(ctx, program, groups[0].members[1].address, commands)
			for n := range keys {
				if len(got) != keys || got[n] != want(n) {
					return false
				}
			}
			return true
		}, func() string { return fmt.Sprintf("%d replies, which begin with %.20q", len(got), got) })
	}
	cli("SET cliN vN", func(int) string { return "OK" })
	sizes := 0
	for _, r := range groups {
		c := newCaller(&rig{t: t, members: []*process{r.primary()}}, 1)
		n, err := strconv.Atoi(c.does("EVAL", "return tostring(#redis.call('keys','*'))", "0"))
		if c.close(); err != nil || n < keys*len(clients)/3 {
			t.Errorf("%s has %d keys, %v", r.primary().id, n, err)
		}
		sizes += n
	}
	if want := keys * len(clients); sizes != want && sizes != want+keys {
		t.Errorf("the groups have %d keys", sizes)
	}
	killed := groups[1].primary()
	killed.kill()
	for _, c := range clients {
		each(c, "a read is answered", func(ctx context.Context, key string) error {
			got, err := c.get(ctx, key)
			if err == nil && got != "v" {
				t.Errorf("%s: %q was acknowledged, and is %q", c.name, key, got)
			}
			return err
		})
	}
	cli("GET cliN", func(n int) string { return fmt.Sprint("v", n) })
	if now := groups[1].primary(); now == killed {
		t.Error("nobody has taken over")
	}
	if err := killed.start(); err != nil {
		t.Fatal(err)
	}
	groups[1].awaitAll()
}

// TestSlotsContradicted: a member that is started with other slots than its group has ends, with an error.
func TestSlotsContradicted(t *testing.T) {
	r := startRig(t, rand.New(rand.NewPCG(1, 1)), false, "interval", 300*time.Millisecond, "STAVE_CLUSTER_ENABLED=yes")
	r.awaitAll()
	p := r.members[2]
	p.signal(syscall.SIGTERM)
	<-p.ended
	if err := p.start("--slots", "0-100"); err != nil {
		t.Fatal(err)
	}
	said := func() string { text, _ := os.ReadFile(p.log()); return string(text) }
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
	}
	if text := said(); p.cmd.ProcessState == nil || p.cmd.ProcessState.ExitCode() == 0 ||
		!strings.Contains(text, "the group main has the slots 0-16383, and the server is told that it has 0-100") {
		t.Errorf("%v: %s", p.cmd.ProcessState, text)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	r.awaitAll()
}

// TestMovedGroup: three more members join a group, and the first three are stopped for good, while clients write: nothing that was acknowledged is lost.
func TestMovedGroup(t *testing.T) {
	r := startRig(t, rand.New(rand.NewPCG(1, 1)), false, "interval", 300*time.Millisecond)
	r.awaitAll()
	old := r.members
	base, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var added []*process
	for i, id := range moreIDs[:3] {
		p := &process{id: id, address: local4(base + i), dir: filepath.Join(dir, id)}
		p.args = []string{"serve", "--dir", filepath.Join(p.dir, "data"), "--id", id, "--addr", p.address, "--etcd", r.apartURL, "--insync-timeout", r.silence.String()}
		added = append(added, p)
	}
	everyone := &rig{t: t, members: append(append([]*process(nil), old...), added...)}
	var writing sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	const writers = 4
	var acknowledged [writers]int // each writes its keys in turn, again and again until it is told OK
	for w := range writers {
		c := newCaller(everyone, uint64(w))
		writing.Go(func() {
			defer c.close()
			for ctx.Err() == nil {
				replies, err := c.do([]string{"SET", fmt.Sprintf("w%d-%d", w, acknowledged[w]), "v"})
				if err == nil && replies[0].Err() == nil {
					acknowledged[w]++
				}
			}
		})
	}
	defer func() { stop(); writing.Wait() }()
	time.Sleep(300 * time.Millisecond)
	for _, p := range added {
		r.add(p)
	}
	r.awaitAll()
	for range old {
		var next *process // the primary last
		for _, p := range r.members[:len(r.members)-len(added)] {
			if next == nil || next == r.primary() {
				next = p
			}
		}
		next.signal(syscall.SIGTERM)
		<-next.ended
		var left []*process
		for _, p := range r.members {
			if p != next {
				left = append(left, p)
			}
		}
		r.members = left
		r.eventually("those that are left are the group", func() bool {
			v := r.record()
			for _, m := range v.InSync {
				if m.ID == next.id {
					return false
				}
			}
			return len(v.InSync) == len(left)
		})
	}
	time.Sleep(300 * time.Millisecond)
	stop()
	writing.Wait()
	c := newCaller(r, 9)
	defer c.close()
	total := 0
	for w, n := range acknowledged {
		total += n
		for i := range n {
			key, got := fmt.Sprintf("w%d-%d", w, i), ""
			r.eventuallyOr("a read is answered", func() bool {
				got = c.does("GETEX", key)
				return !strings.HasPrefix(got, "-")
			}, func() string { return got })
			if got != "v" {
				t.Fatalf("%s was acknowledged, and is %q", key, got)
			}
		}
	}
	t.Logf("%d writes", total)
	if total < 100 {
		t.Errorf("%d writes only", total)
	}
}

// TestLocalPrepared: a directory keeps its ports and the number of groups, of which one that has only ports has one.
func TestLocalPrepared(t *testing.T) {
	dir := t.TempDir()
	l := &local{dir: dir}
	if err := l.prepare(0, true, 2, true); err != nil || !l.isNew || l.groups != 2 || len(l.ids()) != 6 {
		t.Fatal(l, err)
	}
	again := &local{dir: dir}
	if err := again.prepare(6380, false, 1, false); err != nil || again.isNew || again.base != l.base || again.groups != 2 {
		t.Errorf("%+v, %v", again, err)
	}
	for want, err := range map[string]error{
		"--groups 2: leave":       again.prepare(0, false, 3, true),
		"--port ":                 again.prepare(1, true, 2, true),
		"--groups must be 1 to 3": again.prepare(0, false, 4, true),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "port"), []byte("7000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := again.prepare(0, false, 1, true); err != nil || again.base != 7000 || again.groups != 1 || strings.Contains(strings.Join(again.args(0), " "), "--slots") {
		t.Errorf("%+v, %v", again, err)
	}
}
