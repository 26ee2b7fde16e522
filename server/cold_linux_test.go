package server_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/internal/seam"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/vfstest"
	"github.com/stavedb/stave/internal/vfs"
	"github.com/stavedb/stave/server"
)

// coldStore is a store of which nothing is in memory, and whose reads can be held.
type coldStore struct {
	*db.Store
	fs      *vfstest.Cold
	reading atomic.Int64 // reads that wait
	release chan struct{}
}

func openCold(t *testing.T) *coldStore {
	t.Helper()
	c := &coldStore{release: make(chan struct{}), fs: &vfstest.Cold{FS: vfs.OS(), Resident: func() bool { return false }}}
	store, err := db.Open(t.TempDir(), seam.With(&db.Options{NoMerge: true}, seam.Options{FS: c.fs}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Store = store
	return c
}

// hold makes all reads wait from now on, until let, and nothing that has been read be in memory.
func (c *coldStore) hold(t *testing.T) {
	t.Cleanup(c.let)
	c.fs.Forget()
	wait := func() {
		c.reading.Add(1)
		<-c.release
		c.reading.Add(-1)
	}
	c.fs.Reading.Store(&wait)
}

func (c *coldStore) let() {
	if c.fs.Reading.Swap(nil) != nil {
		close(c.release)
	}
}

// awaitReads waits until so many reads wait at once.
func (c *coldStore) awaitReads(t *testing.T, n int64) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); c.reading.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d reads wait together, should be %d", c.reading.Load(), n)
		}
	}
}

// serveCold serves the store to clients that wait for a reply for so long.
func serveCold(t *testing.T, store *coldStore) (connect func() *testClient) {
	dial := serveStore(t, store.Store, server.Options{})
	return func() *testClient {
		c := dial()
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// fill writes the keys with the number i, on pages of their own.
func fill(c *testClient, i int) {
	c.t.Helper()
	for _, command := range []struct{ line, want string }{
		{"SET s# text", "+OK"}, {"SET n# 1", "+OK"}, {"HSET h# f v g v n 1", ":3"}, {"RPUSH l# a b c", ":3"}, {"PFADD p# x", ":1"},
		{"XGROUP CREATE x# g 0 MKSTREAM", "+OK"}, {"XADD x# 1-1 f v", "$3\r\n1-1"}, {"SETRANGE room# 8192 x", ":8193"},
	} {
		c.send(strings.ReplaceAll(command.line, "#", strconv.Itoa(i)) + "\r\n")
		c.expect(command.want + "\r\n")
	}
}

// TestColdReadsLeaveTheLoop: the loop waits for no read of the disk, whatever the command.
func TestColdReadsLeaveTheLoop(t *testing.T) {
	for _, command := range []string{
		"GET s#", "STRLEN s#", "GETRANGE s# 0 3", "APPEND s# x", "INCR n#", "SET n# 1", "GETSET s# x", "GETDEL s#", "MGET s# n#", "TYPE s#",
		"EXISTS s#", "EXPIRE s# 10", "HGET h# f", "HMGET h# f g", "HGETALL h#", "HINCRBY h# n 1", "LINDEX l# 0", "LRANGE l# 0 -1", "LPOP l#",
		"LMOVE l# l# LEFT RIGHT", "XRANGE x# - +", "XADD x# * f v", "XREADGROUP GROUP g c STREAMS x# >", "GETBIT s# 1", "BITCOUNT s#",
		"PFCOUNT p#", "PFADD p# y", "GET s#\r\nGET n#", "MULTI\r\nGET s#\r\nEXEC", "WATCH s#\r\nMULTI\r\nSET s# x\r\nEXEC",
		`EVAL_RO "return{redis.call('GET',KEYS[1])}" 1 s#`, `EVAL "return{redis.call('SET',KEYS[1],'v'),redis.call('HGET',KEYS[2],'f')}" 2 n# h#`,
	} {
		t.Run(command, func(t *testing.T) {
			store := openCold(t)
			connect := serveCold(t, store)
			other, client := connect(), connect()
			fill(other, 0)
			store.hold(t)
			client.send(strings.ReplaceAll(command, "#", "0") + "\r\nPING\r\n")
			store.awaitReads(t, 1)
			for range 10 { // each round of the loop might be behind the read
				other.send("PING\r\n")
				other.expect("+PONG\r\n")
			}
			store.let()
			for line := client.line(); line != "+PONG"; line = client.line() {
				if strings.HasPrefix(line, "-") {
					t.Error(line)
				}
			}
		})
	}
}

// TestColdReadsGoTogether: the reads of many clients are asked for together.
func TestColdReadsGoTogether(t *testing.T) {
	store := openCold(t)
	connect := serveCold(t, store)
	clients := make([]*testClient, 32)
	for i := range clients {
		clients[i] = connect()
		fill(clients[i], i)
	}
	store.hold(t)
	for i, c := range clients {
		c.send("GET s" + strconv.Itoa(i) + "\r\n")
	}
	store.awaitReads(t, int64(len(clients)))
	store.let()
	for _, c := range clients {
		c.expect("$4\r\ntext\r\n")
	}
}

// TestColdCommandsCountOnce: a command that has left the loop for the disk is one call, within EXEC too.
func TestColdCommandsCountOnce(t *testing.T) {
	store := openCold(t)
	c := serveCold(t, store)()
	fill(c, 0)
	fill(c, 1)
	store.fs.Forget()
	c.send("CONFIG RESETSTAT\r\n")
	c.expect("+OK\r\n")
	c.send("MULTI\r\nSET new v\r\nINCR new\r\nGET s0\r\nGET s1\r\nEXEC\r\nGET s0\r\nGET s1\r\nSTRLEN s0\r\n")
	c.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n+OK\r\n-ERR value is not an integer or out of range\r\n$4\r\ntext\r\n$4\r\ntext\r\n$4\r\ntext\r\n$4\r\ntext\r\n:4\r\n")
	stats := c.bulk("INFO commandstats\r\n")
	for _, want := range []string{"cmdstat_exec:calls=1,", "cmdstat_get:calls=4,", "cmdstat_set:calls=1,", "cmdstat_incr:calls=1,", "cmdstat_strlen:calls=1,"} {
		if !strings.Contains(stats, want) {
			t.Errorf("no %s in %s", want, stats)
		}
	}
	if !strings.Contains(stats, "cmdstat_incr:calls=1,") || strings.Count(stats, "failed_calls=1") != 1 {
		t.Errorf("one call has failed: %s", stats)
	}
}

// TestColdWaitersAreServed: what a write in the loop owes to those who wait is done with it, also if that has to be read.
func TestColdWaitersAreServed(t *testing.T) {
	store := openCold(t)
	connect := serveCold(t, store)
	writer, reader, mover := connect(), connect(), connect()
	fill(writer, 0)
	reader.send("XREADGROUP GROUP g c STREAMS x0 >\r\nXREADGROUP GROUP g c BLOCK 0 STREAMS x0 >\r\n")
	reader.expect("*1\r\n*2\r\n$2\r\nx0\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n")
	mover.send("BLMOVE none s0 LEFT LEFT 0\r\n")
	for !strings.Contains(writer.bulk("INFO clients\r\n"), "\r\nblocked_clients:2\r\n") {
		time.Sleep(time.Millisecond)
	}
	store.fs.Forget()
	writer.send("XADD x0 2-1 f v\r\n")
	writer.expect("$3\r\n2-1\r\n")
	store.fs.Forget()
	writer.send("SET q v\r\nRPUSH none v\r\nSET r v\r\n") // served within the batch
	writer.expect("+OK\r\n:1\r\n+OK\r\n")
	reader.expect("*1\r\n*2\r\n$2\r\nx0\r\n*1\r\n*2\r\n$3\r\n2-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n")
	mover.expect("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
}

// forgetful is a server whose machine has nothing of its store in memory when a command comes.
type forgetful struct {
	peer
	fs *vfstest.Cold
}

func (f *forgetful) do(args []string) (resp.Reply, error) {
	f.fs.Forget()
	return f.peer.do(args)
}

func (f *forgetful) send(commands [][]string) error {
	f.fs.Forget()
	return f.peer.send(commands)
}

// TestDifferentialCold is TestDifferential by the event loop, on a store that is seldom in memory.
func TestDifferentialCold(t *testing.T) {
	seed := chance.Seed(t)
	var asked atomic.Uint64
	fs := &vfstest.Cold{FS: vfs.OS(), Resident: func() bool { return rand.New(rand.NewPCG(seed, asked.Add(1))).IntN(4) == 0 }}
	p := newPairOn(t, fs, server.TransportEventLoop)
	for round := range 30 {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		g := &generator{r: r, wide: round%3 == 2}
		var sequence [][]string
		for len(sequence) < roundLength {
			sequence = append(sequence, g.command())
			sequence = append(sequence, g.watched()...)
		}
		p.together = 1 + round%2*r.IntN(maxTogether)
		if _, is := p.stave.(*forgetful); !is { // after an opening
			p.stave = &forgetful{p.stave, fs}
		}
		if d, at := p.replay(sequence, round%reopenEvery == 0); d != "" {
			p.report(round, sequence[:at], false, d)
		}
	}
	t.Logf("%d commands, seed %d; asked %d times what is in memory", p.compared, seed, asked.Load())
}

// TestColdEvictionLeavesTheLoop: what a write evicts may have to be read from the disk, for which the loop does not wait.
func TestColdEvictionLeavesTheLoop(t *testing.T) {
	for _, command := range []string{"SET new v", "MULTI\r\nSET new v\r\nEXEC", "EVAL \"return redis.call('SET',KEYS[1],'v')\" 1 new"} {
		t.Run(command, func(t *testing.T) {
			store := openCold(t)
			connect := serveCold(t, store)
			other, client := connect(), connect()
			for i := range 50 {
				fill(other, i)
			}
			store.hold(t)
			other.send("CONFIG SET maxmemory-policy allkeys-random maxmemory " + strconv.FormatInt(store.Stats().EntryBytes-10_000, 10) + "\r\n")
			other.expect("+OK\r\n")
			client.send(command + "\r\nPING\r\n")
			store.awaitReads(t, 1)
			for range 100 {
				other.send("PING\r\n")
				other.expect("+PONG\r\n")
			}
			store.let()
			for line := client.line(); line != "+PONG"; line = client.line() {
				if strings.HasPrefix(line, "-") {
					t.Error(line)
				}
			}
		})
	}
}

// TestEvictionOfALoop: what clients of a loop write together stays within the bound, but for some batches.
func TestEvictionOfALoop(t *testing.T) {
	const bound, keys = 100_000, 20_000
	store := openStore(t)
	c := serveStore(t, store, server.Options{})()
	c.send("CONFIG SET maxmemory-policy allkeys-lru maxmemory " + strconv.Itoa(bound) + "\r\n")
	c.expect("+OK\r\n")
	go func() {
		var pipeline strings.Builder
		for i := range keys {
			pipeline.WriteString("SET key:" + strconv.Itoa(i) + " v\r\n")
		}
		_, _ = c.Write([]byte(pipeline.String())) // what is missing is not answered
	}()
	most := int64(0)
	for range keys {
		c.expect("+OK\r\n")
		most = max(most, store.Stats().EntryBytes)
	}
	// A batch begins within the bound, unless others had the processor for the millisecond in which keys were to be evicted.
	if batch := int64(64 * 20); most > bound+4*batch || most < bound*9/10 {
		t.Errorf("at most %d bytes of %d", most, bound)
	}
}
