package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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

// TestLostRecord: the data of all etcds are gone. The member that was the primary begins the group anew, and the others join it.
func TestLostRecord(t *testing.T) {
	r := startRig(t, rand.New(rand.NewPCG(1, 1)), true, "interval", *silence)
	c := newCaller(r, 1)
	defer c.close()
	r.writeSome(c)
	first := r.primary()
	first.kill()
	r.eventually("another one takes over", func() bool { p := r.primary(); return p != nil && p != first })
	r.writeSome(c)
	last := r.primary()
	if err := first.start(); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.members {
		p.kill()
		if err := os.RemoveAll(filepath.Join(p.dir, "etcd")); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range r.members {
		var more []string
		if p == last {
			more = []string{"--bootstrap"}
		}
		if err := p.start(more...); err != nil {
			t.Fatal(err)
		}
	}
	r.awaitAll()
	if got := r.primary(); got != last {
		t.Errorf("the primary is %s, not %s", got.id, last.id)
	}
	r.readThem(c)
}
