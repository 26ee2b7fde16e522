package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

const mib = 1 << 20

// longReplies prepares a server whose long replies have little memory, and keys with values of a MiB. It returns what
// MGET of all of them replies. A client that reads nothing for silentAfter is disconnected when others need its
// memory.
func longReplies(t *testing.T, transport server.Transport, o server.Options, silentAfter time.Duration) (v *server.Server, address string, all string) {
	t.Helper()
	o.Transport, o.ClientMemory = transport, 32*mib
	v, address = serve(t, &o, func(v *server.Server) { v.SilentAfter(silentAfter) })
	c := dial(t, address)
	var reply strings.Builder
	reply.WriteString("*8\r\n")
	for i := range 8 {
		value := strings.Repeat(fmt.Sprintf("%d234567890abcdef", i), mib/16)
		c.send(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$2\r\nk%d\r\n$%d\r\n%s\r\n", i, len(value), value))
		c.expect("+OK\r\n")
		fmt.Fprintf(&reply, "$%d\r\n%s\r\n", len(value), value)
	}
	return v, address, reply.String()
}

const mgetAll = "MGET k0 k1 k2 k3 k4 k5 k6 k7\r\n"

// liveHeap is how many bytes the objects take that are in use: it collects the garbage first, and more than once, for what is
// made while a collection lasts counts as live in that one.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	least := uint64(math.MaxUint64)
	for range 4 {
		runtime.GC()
		metrics.Read(sample)
		least = min(least, sample[0].Value.Uint64())
	}
	return least
}

// TestUnreadRepliesTakeNoMemory: a hundred clients ask for 16 MiB each and read nothing; clients that read meanwhile
// get all that they ask for, to the byte and in order, and the replies take no more than their budget of 16 MiB.
func TestUnreadRepliesTakeNoMemory(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		const unread, readers = 100, 3
		v, address, all := longReplies(t, transport, server.Options{}, 2*time.Second)
		start := strings.Index(all[mib:], "$") + mib
		value := all[strings.Index(all[start:], "\n")+start+1:][:100_000]
		got := make([][]byte, readers)
		for i := range got {
			got[i] = make([]byte, len(all))
		}
		const request = "MGET k0 k1 k2 k3 k4 k5 k6 k7 k0 k1 k2 k3 k4 k5 k6 k7\r\n"
		before, arrived := liveHeap(), fieldOf(t, v.Info("stats"), "total_net_input_bytes")
		for range unread {
			dial(t, address).send(request)
		}
		for fieldOf(t, v.Info("stats"), "total_net_input_bytes") < arrived+unread*len(request) {
			time.Sleep(time.Millisecond)
		}
		var most, taken uint64
		done := make(chan struct{})
		var watcher, work sync.WaitGroup
		watcher.Go(func() {
			for n := 0; ; n++ {
				taken = max(taken, uint64(v.RepliesTaken()))
				if n%20 == 0 {
					most = max(most, liveHeap())
				}
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		for i := range readers {
			c := dial(t, address)
			work.Go(func() {
				for n := range 2 {
					if _, err := io.WriteString(c.Conn, fmt.Sprintf("INCR n%d\r\n%sINCR n%d\r\nGETRANGE k1 0 99999\r\n", i, mgetAll, i)); err != nil {
						t.Error(err)
						return
					}
					for _, want := range []string{fmt.Sprintf(":%d\r\n", 2*n+1), all, fmt.Sprintf(":%d\r\n$100000\r\n%s\r\n", 2*n+2, value)} {
						got := got[i][:len(want)]
						if m, err := io.ReadFull(c.in, got); err != nil || string(got) != want {
							t.Errorf("reader %d, round %d: %d bytes of %d, %v: %.100q", i, n, m, len(want), err, got[:m])
							return
						}
					}
				}
			})
		}
		work.Wait()
		close(done)
		watcher.Wait()
		most = max(most, liveHeap(), before) // those who read nothing are still there
		grown := (most - before) / mib
		t.Logf("the live heap has grown by %d MiB, of which long replies took %d", grown, taken/mib)
		if taken > 17*mib {
			t.Errorf("long replies took %d MiB", taken/mib)
		}
		if grown > 256 {
			t.Errorf("the live heap has grown by %d MiB", grown)
		}
	})
}

// TestReplyWithoutRoom: a command that finds no room for its reply has not happened until there is some, whatever it
// is, and then it happens once. Who reads slowly, but reads, keeps its room.
func TestReplyWithoutRoom(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address, all := longReplies(t, transport, server.Options{WriteTimeout: time.Hour}, time.Minute)
		c := dial(t, address)
		element := strings.Repeat("e", 100_000)
		for range 200 {
			c.send(fmt.Sprintf("*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$100000\r\n%s\r\n", element))
			if line, err := c.in.ReadString('\n'); err != nil || line[0] != ':' {
				t.Fatal(line, err)
			}
		}
		popped := func(n int) string {
			return fmt.Sprintf("*%d\r\n", n) + strings.Repeat("$100000\r\n"+element+"\r\n", n)
		}
		holder := dial(t, address)
		holder.send("CLIENT NO-EVICT ON\r\n" + "MGET k0 k1 k2 k3 k4 k5 k6 k7 k0 k1 k2 k3 k4 k5 k6 k7 k0\r\n")
		for v.RepliesTaken() < 8*mib {
			time.Sleep(time.Millisecond)
		}
		requests := []struct{ send, want string }{
			{"LPOP l 100\r\nINCR y\r\n", popped(100) + ":1\r\n"}, // together
			{"MULTI\r\nINCR once\r\nLPOP l 90\r\nEXEC\r\nPING\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n" + popped(90) + "+PONG\r\n"},
			{"EVAL \"redis.call('INCR', 'script') return redis.call('MGET', 'k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7')\" 0\r\nPING\r\n", all + "+PONG\r\n"},
			{"SET x 1\r\n" + mgetAll + "INCR x\r\n", "+OK\r\n" + all + ":2\r\n"},
			{"MULTI\r\nEVAL \"return 0\" 0\r\n" + mgetAll + "EXEC\r\n",
				"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:0\r\n-ERR no memory for the reply: replies that other clients have not read take it; try again later, or ask for it in parts\r\n"},
		}
		clients := make([]*testClient, len(requests))
		for i, r := range requests {
			clients[i] = dial(t, address)
			clients[i].send(r.send)
		}
		last := len(requests) - 1
		clients[last].expect(requests[last].want)
		time.Sleep(500 * time.Millisecond)
		c.send("LLEN l\r\nGET once\r\nGET script\r\nGET x\r\n")
		c.expect(":200\r\n$-1\r\n$-1\r\n$1\r\n1\r\n")
		rest := len("+OK\r\n*17\r\n") + 17*(len(all)-len("*8\r\n"))/8
		for got := 0; got < rest; {
			n, err := holder.in.Read(make([]byte, 300_000))
			if err != nil {
				t.Fatalf("who reads slowly is disconnected after %d bytes: %v", got, err)
			}
			got += n
		}
		var readers sync.WaitGroup
		for i, r := range requests[:last] {
			readers.Go(func() {
				got := make([]byte, len(r.want))
				_ = clients[i].SetReadDeadline(time.Now().Add(2 * time.Minute))
				if n, err := io.ReadFull(clients[i].in, got); err != nil || string(got) != r.want {
					t.Errorf("%.30q: %d bytes of %d, %v: %.200q", r.send, n, len(r.want), err, got[:n])
				}
			})
		}
		readers.Wait()
		c.send("LLEN l\r\nGET once\r\nGET script\r\nGET x\r\n")
		c.expect(":10\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n2\r\n")
		if taken := v.RepliesTaken(); taken != 0 {
			t.Errorf("%d bytes are taken when all replies have been read", taken)
		}
	})
}

// TestSilentClientIsClosed: while others wait for memory, the client that holds the most and takes nothing is
// disconnected; one that takes its reply slowly gets all of it, and nobody is disconnected for whom nobody waits.
func TestSilentClientIsClosed(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		const silentAfter = time.Second
		v, address, _ := longReplies(t, transport, server.Options{}, silentAfter)
		// ask asks for values of 1 MiB, and returns how long the reply is.
		ask := func(values int) (c *testClient, length int) {
			c = dial(t, address)
			c.send("MGET" + strings.Repeat(" k0", values) + "\r\n")
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			return c, len(fmt.Sprintf("*%d\r\n", values)) + values*(mib+len("$1048576\r\n\r\n"))
		}
		slow, read := ask(7)
		taken := func() (n int64) { // when the network has taken what it takes
			for now := int64(-1); n == 0 || n != now; time.Sleep(50 * time.Millisecond) {
				now, n = n, v.RepliesTaken()
			}
			return n
		}
		before := taken()
		silent, length := ask(9)
		for v.RepliesTaken() < before+mib {
			time.Sleep(time.Millisecond)
		}
		piece := make([]byte, mib/4)
		take := func() {
			t.Helper()
			n, err := slow.in.Read(piece[:min(len(piece), read)])
			if err != nil {
				t.Fatalf("a client that reads is disconnected, %d bytes before its end: %v", read, err)
			}
			read -= n
		}
		for start := time.Now(); time.Since(start) < 2*silentAfter; time.Sleep(200 * time.Millisecond) {
			take()
		}
		if n := fieldOf(t, v.Info("stats"), "evicted_clients"); n != 0 {
			t.Fatal("a client is disconnected while nobody waits")
		}
		reader, all := ask(16)
		got := make(chan error, 1)
		go func() {
			_, err := io.CopyN(io.Discard, reader.in, int64(all))
			got <- err
		}()
		for ; read > 0; time.Sleep(100 * time.Millisecond) {
			take()
		}
		if err := <-got; err != nil {
			t.Error(err)
		}
		silent.expectCut(length)
		if n := fieldOf(t, v.Info("stats"), "evicted_clients"); n != 1 {
			t.Errorf("%d clients are disconnected", n)
		}
	})
}

// TestLongReplyIsWhole: of a pipeline of long and short replies, read in uneven pieces, every byte arrives.
func TestLongReplyIsWhole(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address, all := longReplies(t, transport, server.Options{}, time.Minute)
		c := dial(t, address)
		go func() { _, _ = io.WriteString(c.Conn, strings.Repeat("PING\r\n"+mgetAll+"ECHO x\r\n", 20)+"QUIT\r\n") }()
		want := strings.Repeat("+PONG\r\n"+all+"$1\r\nx\r\n", 20) + "+OK\r\n"
		got, err := io.ReadAll(c.in)
		if err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
	})
}

// TestRepliesAboutTheServerHaveRoom: replies of commands that name no keys take their memory from the same budget as
// those of others: clients that ask for long ones and read nothing take no more than it.
func TestRepliesAboutTheServerHaveRoom(t *testing.T) {
	const clients = 5
	many := func(words []string, n int, last string) string {
		words = slices.Clone(words)
		for range n {
			words = append(words, last)
		}
		return requestOf(words...)
	}
	for name, request := range map[string]string{
		"COMMAND INFO":             many([]string{"COMMAND", "INFO"}, 60_000, "get"),
		"COMMAND DOCS":             many([]string{"COMMAND", "DOCS"}, 3000, "config"),
		"COMMAND GETKEYSANDFLAGS":  many([]string{"COMMAND", "GETKEYSANDFLAGS", "MGET"}, 300_000, "k"),
		"ECHO":                     requestOf("ECHO", strings.Repeat("x", 20<<20)),
		"SUBSCRIBE":                many([]string{"SUBSCRIBE"}, 400_000, "c"),
		"PUBSUB NUMSUB":            many([]string{"PUBSUB", "NUMSUB"}, 900_000, "c"),
		"LATENCY HISTOGRAM":        many([]string{"LATENCY", "HISTOGRAM"}, 100_000, "ping"),
		"COMMAND INFO within EXEC": "MULTI\r\n" + many([]string{"COMMAND", "INFO"}, 60_000, "get") + "EXEC\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			v, address := serve(t, &server.Options{ClientMemory: 64 << 20})
			c := dial(t, address)
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
			for range clients {
				c := dial(t, address)
				go func() { _, _ = io.WriteString(c.Conn, request) }() // the server may disconnect it
				for answered := false; !answered && v.WaitingForRoom() == 0; {
					_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
					_, err := c.in.Peek(len("+OK\r\n+QUEUED\r\n") + 1) // after what MULTI replies
					answered = err == nil || !errors.Is(err, os.ErrDeadlineExceeded)
				}
			}
			most := v.MostRepliesTaken()
			if limit := int64(32 << 20); most > limit+limit/4 {
				t.Errorf("the replies take %d bytes of the %d that there are", most, limit)
			}
		})
	}
}
