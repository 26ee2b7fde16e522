package server_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// TestWhatLeavesTheLoop: the loop executes what takes little time, alone and in pipelines; what may take long leaves
// it, and has the same reply.
func TestWhatLeavesTheLoop(t *testing.T) {
	v, address := serveByLoop(t, server.Options{})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	peer := &redisPeer{conn, resp.NewDecoder(conn)}
	do := func(line string) resp.Reply {
		t.Helper()
		reply, err := peer.do(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	for key, n := range map[string]int{"small": 100, "large": 20_000} {
		for from := 0; from < n; from += 100 {
			list, set, scored, hash := "RPUSH l"+key, "SADD s"+key, "ZADD z"+key, "HSET h"+key
			for i := from; i < from+100; i++ {
				list += fmt.Sprintf(" e%d", i)
				set += fmt.Sprintf(" e%d", i)
				scored += fmt.Sprintf(" %d e%d", i, i)
				hash += fmt.Sprintf(" f%d v", i)
			}
			for _, line := range []string{list, set, scored, hash} {
				do(line)
			}
		}
	}
	for key, n := range map[string]int{"small": 100, "large": 3000} {
		for range n {
			do("XADD x" + key + " * field value")
		}
	}
	for _, test := range []struct {
		line   string
		leaves bool
		items  int // in the last reply
	}{
		{"LRANGE lsmall 0 -1", false, 100},
		{"LRANGE llarge 0 99", false, 100},
		{"LRANGE llarge 0 -1", true, 20_000},
		{"ZRANGE zlarge 0 99 WITHSCORES", false, 200},
		{"ZRANGE zlarge 0 -1", true, 20_000},
		{"ZRANGEBYSCORE zlarge 10 19", false, 10},
		{"HGETALL hsmall", false, 200},
		{"HGETALL hlarge", true, 40_000},
		{"SMEMBERS ssmall", false, 100},
		{"SMEMBERS slarge", true, 20_000},
		{"RPOPLPUSH llarge llarge", false, 0},
		{"LINDEX llarge 10000", false, 0},
		{"LPOP llarge 100", false, 100},
		{"LPOP llarge 101", true, 101},
		{"SPOP slarge 5000", true, 5000},
		{"ZPOPMIN zlarge 5000", true, 10_000},
		{"RENAMENX llarge other", true, 0},
		{"RENAMENX lsmall lsmall", true, 0},
		{"SORT none", true, 0},
		{"WAITAOF 1 0 0", true, 2}, // it syncs
		{"DEL zlarge", false, 0},
		{"XRANGE xsmall - +", false, 100},
		{"XRANGE xlarge - + COUNT 100", false, 100},
		{"XREVRANGE xlarge + -", true, 3000},
		{"XREAD COUNT 10 STREAMS xlarge 0", false, 1},
		{"XREAD STREAMS xlarge 0", true, 1},
		{"XREAD COUNT 10 BLOCK 10 STREAMS xlarge 0", false, 1},
		{"XREAD BLOCK 1 STREAMS none 0", false, 0},
		{"XGROUP CREATE xlarge g 0", true, 0},
		{"XREADGROUP GROUP g c COUNT 10 STREAMS xlarge >", false, 1},
		{"XREADGROUP GROUP g c BLOCK 10 COUNT 100 NOACK STREAMS xlarge >", false, 1},
		{"XREADGROUP GROUP g c COUNT 100 STREAMS xlarge 0", false, 1},
		{"XREADGROUP GROUP g c COUNT 51 STREAMS xlarge xlarge > >", true, 2},
		{"XREADGROUP GROUP g c COUNT 101 STREAMS xlarge >", true, 1},
		{"XREADGROUP GROUP g c COUNT 0 STREAMS xlarge >", true, 1},
		{"XREADGROUP GROUP g c COUNT 1 CLAIM 0 STREAMS xlarge >", true, 1},
		{"XGROUP CREATE xlarge COUNT 0", true, 0},
		{"XREADGROUP GROUP COUNT 5 STREAMS xlarge >", true, 1}, // all that a group of that name has not read, to the consumer 5
		{"XREADGROUP GROUP COUNT 5 BLOCK 1 COUNT 1 STREAMS xlarge >", false, 0},
	} {
		before := v.Asides()
		reply := do(test.line)
		if left := v.Asides() > before; left != test.leaves || reply.IsError() || len(reply.Items) != test.items {
			t.Errorf("%s: left the loop: %v, want %v; %d items, want %d; %s", test.line, left, test.leaves, len(reply.Items), test.items, reply.Text)
		}
	}
	c := dial(t, address)
	for _, test := range []struct {
		send, want string
		leaves     bool
	}{
		{"MULTI\r\nSET k 1\r\nINCR k\r\nGET k\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n:2\r\n$1\r\n2\r\n", false},
		{"WATCH k\r\nMULTI\r\nINCR k\r\nEXEC\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:3\r\n", false},
		{"MULTI\r\nEXEC\r\n", "+OK\r\n*0\r\n", false},
		{"EXEC\r\n", "-ERR EXEC without MULTI\r\n", false},
		{"MULTI\r\nLPOP none 1000\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n", true},
		{"MULTI\r\nSORT none\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n*0\r\n", true},
		{"RPUSH few a b\r\nLRANGE few 0 -1\r\nSET k 1\r\nLRANGE few 0 0\r\n", ":2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n+OK\r\n*1\r\n$1\r\na\r\n", false},
		{"SET k 1\r\nSMEMBERS none\r\nINCR k\r\nRENAMENX k j\r\nGET j\r\n", "+OK\r\n*0\r\n:2\r\n:1\r\n$1\r\n2\r\n", true},
	} {
		before := v.Asides()
		c.send(test.send)
		c.expect(test.want)
		if left := v.Asides() > before; left != test.leaves {
			t.Errorf("%q: left the loop: %v, want %v", test.send, left, test.leaves)
		}
	}
	// What turns out to be too long within a batch does so for its client alone, and in its place.
	c.send("SET k 1\r\nINCR k\r\nLRANGE other 0 -1\r\nINCR k\r\n")
	c.expect("+OK\r\n:2\r\n*19799\r\n")
	for range 19799 {
		for range 2 {
			if _, err := c.in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.expect(":3\r\n")
	if info := v.Info("commandstats"); !strings.Contains(info, "cmdstat_lrange:calls=6,") || !strings.Contains(info, "cmdstat_incr:calls=5,") {
		t.Errorf("executed once, counted otherwise: %s", info)
	}
}

// TestWhatFreesMuch: a command that ends many subscriptions or watches at once leaves the loop, and so does the end of a
// connection that has many: each of them takes time, in which the loop would serve nobody.
func TestWhatFreesMuch(t *testing.T) {
	v, address := serveByLoop(t, server.Options{})
	const many, few = 3000, 10
	list := func(command string, n int) (args []string) {
		for i := range n {
			args = append(args, fmt.Sprintf("n%d", i))
		}
		return slices.Insert(args, 0, command)
	}
	for _, test := range []struct {
		hold, end string // no line: the connection ends
		each      string // reply to each name, without its number
		want      string // beginning of the reply to end
	}{
		{"SUBSCRIBE", "UNSUBSCRIBE\r\n", "*3\r\n$9\r\nsubscribe\r\n", "*3\r\n$11\r\nunsubscribe\r\n"},
		{"PSUBSCRIBE", "PUNSUBSCRIBE\r\n", "*3\r\n$10\r\npsubscribe\r\n", "*3\r\n$12\r\npunsubscribe\r\n"},
		{"SSUBSCRIBE", "RESET\r\n", "*3\r\n$10\r\nssubscribe\r\n", "+RESET\r\n"},
		{"SUBSCRIBE", "QUIT\r\n", "*3\r\n$9\r\nsubscribe\r\n", "+OK\r\n"},
		{"SUBSCRIBE", "", "*3\r\n$9\r\nsubscribe\r\n", ""},
		{"WATCH", "UNWATCH\r\n", "", "+OK\r\n"},
		{"WATCH", "MULTI\r\nDISCARD\r\n", "", "+OK\r\n"},
		{"WATCH", "", "", ""},
	} {
		for n, leaves := range map[int]bool{few: false, many: true} {
			c := dial(t, address)
			c.sendArray(list(test.hold, n)...)
			if test.each == "" {
				c.expect("+OK\r\n")
			} else {
				for i := range n {
					name := fmt.Sprintf("n%d", i)
					c.expect(fmt.Sprintf("%s$%d\r\n%s\r\n:%d\r\n", test.each, len(name), name, i+1))
				}
			}
			before := v.Asides()
			if c.send(test.end); test.end != "" {
				c.expect(test.want)
			}
			_ = c.Close()
			for deadline := time.Now().Add(time.Minute); !strings.Contains(v.Info("clients"), "connected_clients:0\r\n"); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("a connection is left: %s", v.Info("clients"))
				}
			}
			if left := v.Asides() > before; left != leaves {
				t.Errorf("%s of %d names, then %q: left the loop: %v, want %v", test.hold, n, test.end, left, leaves)
			}
			for _, none := range []string{"pubsub_channels:0\r\n", "pubsub_patterns:0\r\n", "pubsubshard_channels:0\r\n"} {
				if info := v.Info("stats"); !strings.Contains(info, none) {
					t.Errorf("%s of %d names, then %q: want %q in %s", test.hold, n, test.end, none, info)
				}
			}
		}
	}
}
