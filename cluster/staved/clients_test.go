package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// client is a client library for clusters, which knows the addresses of all members.
type client struct {
	name  string
	set   func(ctx context.Context, key string) error
	get   func(ctx context.Context, key string) (string, error)
	close func()
}

// goRedis asks for the map each second: by itself it does so much more rarely, and not because the primary does not answer.
func goRedis(addresses []string) client {
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, ClusterStateReloadInterval: time.Second})
	return client{
		"go-redis",
		func(ctx context.Context, key string) error { return c.Set(ctx, key, "v", 0).Err() },
		func(ctx context.Context, key string) (string, error) { return c.Get(ctx, key).Result() },
		func() { _ = c.Close() },
	}
}

func rueidisClient(t *testing.T, addresses []string) client {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addresses, DisableCache: true, ShuffleInit: true})
	if err != nil {
		t.Fatal(err)
	}
	return client{
		"rueidis",
		func(ctx context.Context, key string) error {
			return c.Do(ctx, c.B().Set().Key(key).Value("v").Build()).Error()
		},
		func(ctx context.Context, key string) (string, error) {
			return c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
		},
		c.Close,
	}
}

// redisCLI is redis-cli -c, a process each time, which is told of one member.
func redisCLI(program, address string) client {
	host, port, _ := net.SplitHostPort(address)
	do := func(ctx context.Context, words ...string) (string, error) {
		out, err := exec.CommandContext(ctx, program, append([]string{"-c", "-e", "-h", host, "-p", port}, words...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	return client{
		"redis-cli -c",
		func(ctx context.Context, key string) error { _, err := do(ctx, "SET", key, "v"); return err },
		func(ctx context.Context, key string) (string, error) { return do(ctx, "GET", key) },
		func() {},
	}
}

// TestClientsOfClusters: clients of Redis Cluster find the primary by themselves, and the next one when it is killed.
func TestClientsOfClusters(t *testing.T) {
	r := startRig(t, rand.New(rand.NewPCG(2, 1)), true, "interval", 300*time.Millisecond, "STAVE_CLUSTER_ENABLED=yes")
	r.awaitAll()
	var addresses []string
	for _, p := range r.members {
		addresses = append(addresses, p.address)
	}
	var kept *process // that is not killed: redis-cli asks no other one
	for _, p := range r.members {
		if p != r.primary() {
			kept = p
		}
	}
	clients := []client{goRedis(addresses), rueidisClient(t, addresses)}
	if program, err := exec.LookPath("redis-cli"); err == nil {
		clients = append(clients, redisCLI(program, kept.address))
	} else {
		t.Log("without redis-cli, which is not here")
	}
	var done [][]string // by client, the keys whose writes were acknowledged
	write := func(round string) {
		t.Helper()
		for i, c := range clients {
			for n := range 20 {
				key := fmt.Sprint(c.name, round, n)
				r.eventually("a write of "+c.name+" is acknowledged", func() bool {
					ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
					defer cancel()
					return c.set(ctx, key) == nil
				})
				done[i] = append(done[i], key)
			}
		}
	}
	for _, c := range clients {
		defer c.close()
	}
	done = make([][]string, len(clients))
	write("before")
	killed := r.primary()
	killed.signal(syscall.SIGKILL)
	<-killed.ended
	write("after")
	if now := r.primary(); now == killed {
		t.Error("nobody has taken over")
	}
	for i, c := range clients {
		for _, key := range done[i] {
			got, err := "", error(nil)
			r.eventually("a read of "+c.name+" is answered", func() bool {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				got, err = c.get(ctx, key)
				return err == nil
			})
			if got != "v" {
				t.Errorf("%s: %q was acknowledged, and is %q", c.name, key, got)
			}
		}
	}
}
