package server_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// TestHeld: what a session keeps counts, within a factor of two of what it takes on the heap.
func TestHeld(t *testing.T) {
	live := func() int {
		runtime.GC()
		runtime.GC() // pools let go of what they have in two steps
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	v := newServer(t, openStore(t), &server.Options{})
	const n = 30_000
	for name, request := range map[string]func(i int) string{
		"subscriptions":      func(i int) string { return fmt.Sprintf("SUBSCRIBE channel:%d\r\n", i) },
		"patterns":           func(i int) string { return fmt.Sprintf("PSUBSCRIBE pattern:%d:*\r\n", i) },
		"watched keys":       func(i int) string { return fmt.Sprintf("WATCH key:%d\r\n", i) },
		"queued commands":    func(int) string { return "PING\r\n" },
		"queued arguments":   func(i int) string { return "MSET" + strings.Repeat(fmt.Sprintf(" key:%d value", i), 10) + "\r\n" },
		"watched by one":     func(i int) string { return fmt.Sprintf("WATCH a:%d b:%d c:%d d:%d\r\n", i, i, i, i) },
		"long channel names": func(i int) string { return fmt.Sprintf("SUBSCRIBE %0300d\r\n", i) },
	} {
		s := v.NewSession()
		if strings.HasPrefix(name, "queued") {
			ask(s, "MULTI\r\n")
		}
		before, heldBefore := live(), s.Held()
		for i := range n {
			ask(s, request(i))
		}
		took, held := live()-before, s.Held()-heldBefore
		t.Logf("%d %s: %d bytes on the heap, %d counted", n, name, took, held)
		if held < took/2 || held > 2*took {
			t.Errorf("%d %s take %d bytes, and %d are counted", n, name, took, held)
		}
		ask(s, "DISCARD\r\nUNWATCH\r\nUNSUBSCRIBE\r\nPUNSUBSCRIBE\r\n")
		if rest := s.Held() - heldBefore; rest > 64<<10 {
			t.Errorf("%d bytes are counted when the %s are gone", rest, name)
		}
		s.Close()
	}
}

// TestQueueTakesWhatIsCounted: a long MULTI takes no more memory than 1.5 times what is counted, what is garbage included,
// and a command without arguments no more than its bytes and 100 more.
func TestQueueTakesWhatIsCounted(t *testing.T) {
	const n, each = 600_000, 1000
	v := newServer(t, openStore(t), &server.Options{})
	s := v.NewSession()
	defer s.Close()
	runtime.GC()
	heap := func() int {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}} // live, or not collected yet
		metrics.Read(sample)
		return int(sample[0].Value.Uint64())
	}
	before := heap()
	ask(s, "MULTI\r\n")
	in := []byte(strings.Repeat("PING\r\n", each))
	most := 0
	for range n / each {
		s.Feed(in)
		s.Flushed(len(s.Output()))
		most = max(most, heap()-before)
	}
	held := s.Held()
	t.Logf("%d commands: %d bytes of heap each, %d counted", n, most/n, held/n)
	if most > held*3/2 || held > n*(len("PING")+100) {
		t.Errorf("%d bytes of heap, %d counted", most, held)
	}
}

// TestUnfinishedCommandsTakeTheirBytes: clients that have sent most of a command of a million empty arguments take
// little more memory than these bytes, all of it is counted, and with less memory for clients the largest are
// disconnected.
func TestUnfinishedCommandsTakeTheirBytes(t *testing.T) {
	const clients, arguments = 30, 300_000
	sent := arguments * len("$0\r\n\r\n")
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		runtime.GC() // pools let go of what they have in two steps
		before := int(liveHeap())
		for range clients {
			dial(t, address).send("*1048576\r\n" + strings.Repeat("$0\r\n\r\n", arguments))
		}
		for fieldOf(t, v.Info("stats"), "total_net_input_bytes") < clients*sent {
			time.Sleep(time.Millisecond)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // the last round is counted after it was read
			runtime.GC()
			taken, counted := int(liveHeap())-before, fieldOf(t, v.Info("clients"), "client_memory")
			if taken <= clients*sent*2 && counted >= taken*3/4 && counted <= taken*2 {
				t.Logf("%d clients have sent %d bytes each: %d bytes on the heap each, %d counted", clients, sent, taken/clients, counted/clients)
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes on the heap, %d counted, for %d that were sent", taken, counted, clients*sent)
			}
		}
		c := dial(t, address)
		c.send(fmt.Sprintf("CONFIG SET maxmemory-clients %d\r\n", clients*sent/4))
		c.expect("+OK\r\n")
		for n := clients; n > clients/4+1; n = fieldOf(t, v.Info("clients"), "connected_clients") {
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
		}
	})
}

// fieldOf is the number that a section of INFO has under a name.
func fieldOf(t *testing.T, info, name string) int {
	t.Helper()
	_, rest, ok := strings.Cut(info, "\n"+name+":")
	n, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	if !ok || err != nil {
		t.Fatalf("INFO has no %s: %s", name, info)
	}
	return n
}

// TestQuietClientsAreEvicted: what clients hold comes down to maxmemory-clients when the limit is lowered, also if none of
// them says anything more; and no more of them are closed than it takes.
func TestQuietClientsAreEvicted(t *testing.T) {
	const clients, each, limit = 20, 3 << 20, 10 << 20
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		for range clients {
			c := dial(t, address)
			c.send("MULTI\r\n" + requestOf("SET", "key", strings.Repeat("x", each)) + "GET key\r\n")
			c.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n")
		}
		c := dial(t, address)
		c.send(fmt.Sprintf("CONFIG SET maxmemory-clients %d\r\n", limit))
		c.expect("+OK\r\n")
		for start := time.Now(); fieldOf(t, v.Info("clients"), "client_memory") > limit; time.Sleep(time.Millisecond) {
			if time.Since(start) > time.Minute {
				t.Fatal("quiet clients hold more than the limit:", v.Info("clients"))
			}
		}
		awaitClients(t, v, fieldOf(t, v.Info("clients"), "connected_clients"))
		if held := fieldOf(t, v.Info("clients"), "client_memory"); held < limit/3 {
			t.Errorf("%d bytes are left of the %d that are allowed", held, limit)
		}
	})
}

// TestUnreadMailIsCounted: messages that wait for clients that take nothing count as theirs while they come, and not only when
// such a client is served again, which is never.
func TestUnreadMailIsCounted(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		const limit, silent = 16 << 20, 6
		v, address := serve(t, &server.Options{Transport: transport, ClientMemory: limit})
		for range silent {
			dial(t, address).send("SUBSCRIBE c\r\n")
		}
		p := dial(t, address)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			p.send("PUBLISH c first\r\n")
			if p.line() == fmt.Sprint(":", silent) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("nobody listens")
			}
		}
		text := strings.Repeat("t", 64<<10)
		for range 24 << 20 / len(text) { // of each: less than the limit of a mailbox
			p.sendArray("PUBLISH", "c", text)
			p.line()
		}
		if evicted := fieldOf(t, v.Info("stats"), "evicted_clients"); evicted == 0 {
			t.Errorf("%d MiB wait for each of %d clients, and none is evicted: %s", 24, silent, v.Info("clients"))
		}
		p.send("PING\r\n")
		p.expect("+PONG\r\n")
	})
}
