package server_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

// cachingClient reads keys through a cache of its own, as a library with client-side caching does: a value is kept from
// its reply on, until a message, or a write of the client's own in mode NOLOOP, says that it may be another.
type cachingClient struct {
	t     *testing.T
	peer  *redisPeer
	mode  string // the arguments of CLIENT TRACKING on
	cache map[string]string
	drops int
}

func newCachingClient(t *testing.T, address, mode string) *cachingClient {
	t.Helper()
	conn, err := net.Dial("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &cachingClient{t: t, peer: &redisPeer{conn, resp.NewDecoder(conn)}, mode: mode, cache: map[string]string{}}
	c.run(strings.Fields("hello 3"), strings.Fields("client tracking on "+mode))
	return c
}

// run sends commands together and returns their replies. Values that GETs of them reply are kept.
func (c *cachingClient) run(commands ...[]string) (replies []resp.Reply) {
	if err := c.peer.send(commands); err != nil {
		c.t.Error(err)
		return nil
	}
	for i, args := range commands {
		reply, ok := c.reply()
		if !ok {
			return nil
		}
		if reply.IsError() {
			c.t.Errorf("%q: %s", args, reply.Text)
		}
		switch {
		case args[0] == "get" && strings.Contains(c.mode, "optin") && (i == 0 || commands[i-1][0] != "client"): // it is not tracked
		case args[0] == "get":
			c.cache[args[1]] = shownValue(reply)
		case strings.Contains(c.mode, "noloop"):
			for _, word := range args[1:] {
				delete(c.cache, word)
			}
			if args[0] == "exec" {
				clear(c.cache)
			}
		}
		replies = append(replies, reply)
	}
	return replies
}

// reply reads the next reply, and does what messages before it say.
func (c *cachingClient) reply() (resp.Reply, bool) {
	for {
		reply, err := c.peer.decoder.Read()
		if err != nil {
			c.t.Error(err)
			return reply, false
		}
		if reply.Kind != resp.Push {
			return reply, true
		}
		if string(reply.Items[0].Text) != "invalidate" {
			c.t.Errorf("message %s", show(reply))
		}
		c.drops++
		if reply.Items[1].Null {
			clear(c.cache)
		}
		for _, key := range reply.Items[1].Items {
			delete(c.cache, string(key.Text))
		}
	}
}

// get reads a key, with others if they are not in the cache.
func (c *cachingClient) get(keys ...string) {
	var commands [][]string
	for _, key := range keys {
		if _, cached := c.cache[key]; cached {
			continue
		}
		if strings.Contains(c.mode, "optin") {
			commands = append(commands, strings.Fields("client caching yes"))
		}
		commands = append(commands, []string{"get", key})
	}
	c.run(commands...)
}

func shownValue(r resp.Reply) string {
	if r.Null {
		return "(none)"
	}
	return string(r.Text)
}

// staleKeys are few, so that reads and writes of them meet.
var staleKeys = []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"}

// writeSomething changes one or more of the keys, each in another way.
func (c *cachingClient) writeSomething(r *rand.Rand, n int) {
	k, other, v := staleKeys[r.IntN(len(staleKeys))], staleKeys[r.IntN(len(staleKeys))], strconv.Itoa(n)
	f := func(text string) []string { return strings.Fields(text) }
	switch r.IntN(16) {
	default:
		c.run(f("set " + k + " " + v))
	case 0:
		c.run(f("del " + k))
	case 1:
		c.run(f("mset " + k + " " + v + " " + other + " " + v))
	case 2:
		c.run(f("set " + k + " " + v + " px 3"))
	case 3:
		c.run(f("append " + k + " x"))
	case 4:
		c.run(f("multi"), f("set "+k+" "+v), f("get "+k), f("set "+other+" "+v), f("exec"))
		delete(c.cache, k) // the reply of GET was QUEUED
	case 5:
		c.run([]string{"eval", "redis.call('set', KEYS[1], ARGV[1]) return redis.call('get', KEYS[1])", "1", k, v})
	case 6:
		if k != other {
			c.run(f("copy "+k+" "+other+" replace"), f("set "+k+" "+v))
		}
	case 7:
		if r.IntN(10) == 0 {
			c.run(f("flushdb"))
		}
	case 8:
		if r.IntN(10) == 0 {
			c.run(f("swapdb 0 1"))
		}
	case 9:
		c.run(f("set "+k+" "+v), f("get "+k), f("set "+k+" "+v+"b"), f("get "+other))
	case 10:
		c.run(f("pexpire " + k + " 2"))
	case 11:
		c.run(f("setrange " + k + " 2 z"))
	}
}

// TestNoStaleCache: whatever happens, when all messages have arrived no client has a value in its cache that is not the
// key's.
func TestNoStaleCache(t *testing.T) {
	seed := chance.Seed(t)
	for _, modes := range [][]string{{""}, {"noloop", "", "optin", "optout noloop", "bcast", "bcast noloop prefix k"}} {
		for _, limit := range []int{0, 3} {
			t.Run(fmt.Sprintf("%d modes, limit %d", len(modes), limit), func(t *testing.T) {
				eachTransport(t, func(t *testing.T, transport server.Transport) {
					address := serveUnix(t, transport)
					var clients []*cachingClient
					for i := range 6 {
						clients = append(clients, newCachingClient(t, address, modes[i%len(modes)]))
					}
					clients[0].run(strings.Fields("config set tracking-table-max-keys " + strconv.Itoa(limit)))
					var all sync.WaitGroup
					for i, c := range clients {
						r := rand.New(rand.NewPCG(seed, uint64(i)))
						all.Go(func() {
							for n := range staleRounds {
								if r.IntN(3) == 0 {
									c.writeSomething(r, i*staleRounds+n)
								} else {
									c.get(staleKeys[r.IntN(len(staleKeys))], staleKeys[r.IntN(len(staleKeys))])
								}
							}
						})
					}
					all.Wait()
					clients[0].run([]string{"set", staleKeys[0], "last"})
					for _, c := range clients { // so that there is something to verify
						c.get(staleKeys[0], staleKeys[0])
					}
					verifyCaches(t, address, clients)
				})
			})
		}
	}
}

const staleRounds = 400

// verifyCaches compares the caches with the store. Keys that have expired are reported when they are deleted, soon
// after.
func verifyCaches(t *testing.T, address string, clients []*cachingClient) {
	t.Helper()
	plain := &cachingClient{t: t, cache: map[string]string{}}
	conn, err := net.Dial("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	plain.peer = &redisPeer{conn, resp.NewDecoder(conn)}
	cached, dropped := 0, 0
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var stale []string
		for _, key := range staleKeys {
			plain.run([]string{"get", key})
		}
		for i, c := range clients {
			c.run([]string{"ping"})
			for key, value := range c.cache {
				if cached++; value != plain.cache[key] {
					stale = append(stale, fmt.Sprintf("client %d (%s) has %s %q, and it is %q", i, c.mode, key, value, plain.cache[key]))
				}
			}
			dropped += c.drops
		}
		if len(stale) == 0 {
			break
		}
		if time.Now().After(deadline) {
			slices.Sort(stale)
			t.Fatal(strings.Join(stale, "\n"))
		}
	}
	if dropped == 0 || cached == 0 {
		t.Errorf("%d messages, %d values in caches: nothing was tested", dropped, cached)
	}
}
