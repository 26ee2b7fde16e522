package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

var (
	rates   = flag.Duration("rates", 0, "TestRates: how long each cell is measured, three times")
	ratesOf = flag.String("rates.of", "", "TestRates: those with this in their names")
)

// target is a service that clients write to. connect returns what one client does again and again; its connection is closed when t ends.
type target struct {
	name    string
	connect func(t *testing.T, client int) (write func() error, err error)
}

// TestRates measures writes of one client after the other, of 64 and of 256 at once, to groups, to a Redis server with two replicas
// and to etcd, in turns. All run on this machine.
func TestRates(t *testing.T) {
	if *rates == 0 {
		t.Skip("-rates 5s: measures groups beside redis-server and etcd, five minutes")
	}
	var targets []target
	var put *rig
	for _, c := range []struct{ name, sync string }{{"group, always", "always"}, {"group, everysec", "interval"}} {
		r := startRig(t, rand.New(rand.NewPCG(1, 1)), true, c.sync, time.Second)
		r.awaitAll()
		targets = append(targets, target{c.name, func(t *testing.T, i int) (func() error, error) { return writer(t, i, r.primary().address, "") }})
		put = r
	}
	for _, c := range []struct{ name, fsync, wait string }{{"redis-server, everysec", "everysec", ""}, {"redis-server, everysec, WAIT 1", "everysec", "WAIT 1 0"}, {"redis-server, always, WAIT 2", "always", "WAIT 2 0"}} {
		address := startRedis(t, c.fsync)
		targets = append(targets, target{c.name, func(t *testing.T, i int) (func() error, error) { return writer(t, i, address, c.wait) }})
	}
	var clients []*clientv3.Client
	for range 16 {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{put.members[0].etcd, put.members[1].etcd, put.members[2].etcd}, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		clients = append(clients, client)
	}
	targets = append(targets, target{"etcd, put", func(t *testing.T, i int) (func() error, error) {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		return func() error {
			_, err := clients[i%len(clients)].Put(t.Context(), "/"+strconv.Itoa(rng.IntN(keysOfRates)), strings.Repeat("x", 128))
			return err
		}, nil
	}})
	targets = slices.DeleteFunc(targets, func(s target) bool { return !strings.Contains(s.name, *ratesOf) })
	for _, n := range []int{64, 256} {
		results := make([][]rate, len(targets))
		for round := range 3 {
			for i := range targets {
				i = (i + round) % len(targets)
				t.Run(fmt.Sprintf("%s/%d", targets[i].name, n), func(t *testing.T) { results[i] = append(results[i], measure(t, targets[i], n)) })
			}
		}
		for i, s := range targets {
			slices.SortFunc(results[i], func(a, b rate) int { return int(a.perSecond - b.perSecond) })
			t.Logf("%3d clients, %-30s %8.0f writes/s, p50 %6.2f ms, p99 %6.2f ms", n, s.name, results[i][1].perSecond, results[i][1].p50, results[i][1].p99)
		}
	}
}

const keysOfRates = 100_000

// writer returns a client that sets a key to 128 bytes, and perhaps does another command in the same pipeline.
func writer(t *testing.T, i int, address, more string) (func() error, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() })
	rng, in := rand.New(rand.NewPCG(uint64(i), 2)), bufio.NewReader(c)
	value := strings.Repeat("x", 128)
	return func() error {
		request := fmt.Sprintf("SET k%d %s\r\n", rng.IntN(keysOfRates), value)
		replies := 1
		if more != "" {
			request, replies = request+more+"\r\n", 2
		}
		if _, err := c.Write([]byte(request)); err != nil {
			return err
		}
		for range replies {
			line, err := in.ReadString('\n')
			if err == nil && line[0] == '-' {
				err = fmt.Errorf("%s", line)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// rate is the writes a second, and what they took in milliseconds.
type rate struct{ perSecond, p50, p99 float64 }

func measure(t *testing.T, s target, n int) rate {
	t.Helper()
	time.Sleep(time.Second) // what the one before has left to do
	var all []time.Duration
	var mu sync.Mutex
	var working sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), *rates)
	defer stop()
	for i := range n {
		write, err := s.connect(t, i)
		if err != nil {
			t.Fatal(err)
		}
		working.Go(func() {
			var mine []time.Duration
			for ctx.Err() == nil {
				began := time.Now()
				if err := write(); err != nil {
					t.Errorf("%s: %v", s.name, err)
					return
				}
				mine = append(mine, time.Since(began))
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	working.Wait()
	slices.Sort(all)
	if len(all) == 0 {
		return rate{}
	}
	at := func(part float64) float64 { return all[int(part*float64(len(all)))].Seconds() * 1000 }
	return rate{float64(len(all)) / rates.Seconds(), at(0.5), at(0.99)}
}

// startRedis starts a Redis server with two replicas, and returns its address.
func startRedis(t *testing.T, fsync string) string {
	base, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range 3 {
		args := []string{"--port", strconv.Itoa(base + i), "--dir", dir, "--appendonly", "yes", "--appendfsync", fsync, "--appenddirname", fmt.Sprint("aof", i), "--dbfilename", fmt.Sprint("dump", i), "--save", ""}
		if i > 0 {
			args = append(args, "--replicaof", "127.0.0.1 "+strconv.Itoa(base))
		}
		cmd := exec.Command("redis-server", args...)
		setChild(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	address := local4(base)
	r := &rig{t: t, members: []*process{{address: address}}}
	c := &caller{r: r, rng: rand.New(rand.NewPCG(1, 1)), at: r.members[0]}
	defer c.close()
	r.eventuallyOr("redis-server has two replicas", func() bool { return strings.Count(c.does("INFO", "replication"), "state=online") == 2 }, func() string { return c.does("INFO", "replication") })
	return address
}
