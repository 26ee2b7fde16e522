package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// What docs/CLUSTER.md says of losses that do not pass by themselves.

const lostKeys = 100

func (r *rig) writeSome(c *caller) {
	r.t.Helper()
	for i := range lostKeys {
		r.eventually("a write is acknowledged", func() bool { return c.does("SET", fmt.Sprint("k", i), "v") == "OK" })
	}
}

func (r *rig) readThem(c *caller) {
	r.t.Helper()
	for i := range lostKeys {
		got := ""
		r.eventuallyOr("a read is answered", func() bool {
			got = c.does("GETEX", fmt.Sprint("k", i))
			return got == "v"
		}, func() string { return fmt.Sprintf("k%d is %q", i, got) })
	}
}

// TestLostMachine: a member whose data are gone, with its etcd's, comes back empty, under its name, and gets everything.
func TestLostMachine(t *testing.T) {
	r := startRig(t, rand.New(rand.NewPCG(1, 1)), true, "interval", *silence)
	c := newCaller(r, 1)
	defer c.close()
	r.writeSome(c)
	r.awaitAll()
	lost := r.primary()
	lost.kill()
	for _, name := range []string{"data", "etcd"} {
		if err := os.RemoveAll(filepath.Join(lost.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.readThem(c)

	// etcdctl member remove, and member add.
	var endpoints []string
	for _, p := range r.members {
		if p != lost {
			endpoints = append(endpoints, p.etcd)
		}
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Members {
		if m.Name != lost.id {
			continue
		}
		r.eventuallyOr("the etcd is removed", func() bool { _, err = client.MemberRemove(ctx, m.ID); return err == nil }, func() string { return fmt.Sprint(err) })
		r.eventuallyOr("the etcd is added", func() bool { _, err = client.MemberAdd(ctx, m.PeerURLs); return err == nil }, func() string { return fmt.Sprint(err) })
	}
	if err := lost.start("--etcd-rejoin"); err != nil {
		t.Fatal(err)
	}
	r.awaitAll()
	for _, p := range r.members { // it counts as any other one
		if p != lost {
			p.kill()
			if err := p.start(); err != nil {
				t.Fatal(err)
			}
			r.awaitAll()
		}
	}
	r.readThem(c)
}

// info is what INFO replication says of members, one after the other.
func (r *rig) info(members ...*process) string {
	r.t.Helper()
	var all strings.Builder
	for _, p := range members {
		c := &caller{r: &rig{t: r.t, members: []*process{p}}, rng: r.rng, at: p}
		text := ""
		r.eventually(p.id+" says what it is", func() bool { text = c.does("INFO", "replication"); return strings.Contains(text, "group_noted:") })
		all.WriteString(text)
		c.close()
	}
	return all.String()
}

// TestLostRecord: the data of all etcds are gone. What members have noted is enough to make the record anew, if all are there that were in sync.
func TestLostRecord(t *testing.T) {
	r := startRig(t, rand.New(rand.NewPCG(1, 1)), true, "interval", *silence)
	c := newCaller(r, 1)
	defer c.close()
	r.writeSome(c)
	r.awaitAll()
	first := r.primary()
	first.kill()
	r.eventually("another one takes over", func() bool { v := r.record(); return v.Term > 1 && len(v.InSync) == 2 })
	r.writeSome(c)
	last := r.record()
	var others []*process
	for _, p := range r.members {
		if p != first {
			others = append(others, p)
			p.kill()
		}
		if err := os.RemoveAll(filepath.Join(p.dir, "etcd")); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range r.members {
		if err := p.start("--bootstrap"); err != nil { // which is ignored, as the group has been there
			t.Fatal(err)
		}
	}
	recover := func(input string, more ...string) (status int, out string) {
		var both bytes.Buffer
		args := append([]string{"staved", "recover", "--etcd", r.members[0].etcd}, more...)
		status = run(args, strings.NewReader(input), &both, &both)
		return status, both.String()
	}
	r.info(r.members...)
	time.Sleep(time.Second)
	if got := r.record(); got.Version != 0 {
		t.Errorf("a member has begun the group anew: %+v", got)
	}
	for _, wrong := range []struct{ want, input string }{
		{others[1].id + " is missing: it may know a later record", r.info(others[0])},
		{others[1].id + " is missing", r.info(first, others[0])},
		{"twice", r.info(others[0], others[1], others[0])},
		{"no member of a group", "role:master\r\n"},
		{"before any group_name", "group_id:a\r\n"},
		{"lacks fields", "group_name:main\r\ngroup_id:a\r\n"},
		{"of the group other", "group_name:other\r\n"},
	} {
		if status, out := recover(wrong.input); status == 0 || !strings.Contains(out, wrong.want) {
			t.Errorf("status %d: %s; want %q", status, out, wrong.want)
		}
	}
	if status, out := recover(r.info(others...)); status != 0 || !strings.Contains(out, fmt.Sprintf(`"term":%d`, last.Term+1)) {
		t.Fatalf("status %d: %s", status, out)
	}
	if status, out := recover(r.info(first)); status == 0 {
		t.Errorf("again: %s", out)
	}
	r.awaitAll()
	r.readThem(c)
	if status, out := recover(r.info(r.members...)); status == 0 || !strings.Contains(out, "has found a record") {
		t.Errorf("of a group that runs: status %d: %s", status, out)
	}
}
