package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

// pipelined are the scripts of TestPipelinesOfScripts, with the number of keys that each declares: short and long ones,
// that learn which locks they need, that fail, that have effects besides what they write.
var pipelined = []struct {
	script string
	keys   int
}{
	{"return redis.call('INCR', KEYS[1])", 1},
	{"redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[2])", 2},
	{"redis.call('IN' .. 'CR', KEYS[1]) return redis.call('IN' .. 'CR', 'k' .. ARGV[1] % 6)", 1},
	{"return redis.call('GET', 'k' .. ARGV[1] % 6)", 0},
	{"redis.call('INCR', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'x')", 1},
	{"redis.call('INCR', KEYS[1]) return redis.pcall('LPUSH', KEYS[1], 'x')['err']", 1},
	{"return ARGV[1]", 0},
	{"redis.call('INCR', KEYS[1]) for i = 1, 3000 do local x = i * i end return redis.call('INCR', KEYS[1])", 1},
	{"redis.call('INCR', KEYS[1]) return #redis.call('KEYS', 'k*')", 1},
	{"redis.call('SELECT', '1') redis.call('INCR', KEYS[1]) redis.call('SELECT', '0') return redis.call('EXISTS', KEYS[1])", 1},
	{"redis.call('RPUSH', 'list', ARGV[1]) redis.call('PUBLISH', 'channel', ARGV[1]) return redis.call('LLEN', 'list')", 0},
	{"if ARGV[1] % 3 == 0 then return redis.call('DEL', 'list', KEYS[1]) end return redis.call('EXISTS', KEYS[1])", 1},
	{"return {redis.call('GET', KEYS[1]), redis.call('TYPE', 'list')['ok'], {1, {2}}, false}", 1},
	{"redis.call('SET', KEYS[1], 'v') error('no')", 1},
	{"redis.setresp(3) return redis.call('HGETALL', 'h' .. KEYS[1])", 1},
}

// oneOfPipeline draws a request, which may be several that belong together.
func oneOfPipeline(r *rand.Rand) string {
	key, number := fmt.Sprint("k", r.IntN(6)), fmt.Sprint(r.IntN(100))
	switch n := r.IntN(20); {
	case n < 12:
		p := pipelined[r.IntN(len(pipelined))]
		name := "EVAL"
		if r.IntN(8) == 0 {
			name = "EVAL_RO" // which refuses those that write
		}
		args := []string{name, p.script, fmt.Sprint(p.keys)}
		for range p.keys {
			args = append(args, fmt.Sprint("k", r.IntN(6)))
		}
		return wireText(append(args, number)...)
	case n < 14:
		return wireText("SET", key, number)
	case n < 16:
		return wireText("GET", key)
	case n == 16:
		return wireText("HSET", "h"+key, number, "v")
	case n == 17:
		return wireText("LPOP", "list")
	case n == 18:
		p := pipelined[r.IntN(2)]
		return "MULTI\r\n" + wireText("INCR", key) + wireText("EVAL", p.script, "2", key, "k0", number) + "EXEC\r\n"
	default:
		return wireText("INCR", key)
	}
}

const end = "$3\r\nend\r\n"

// TestPipelinesOfScripts: a pipeline of scripts and other commands has the replies, the effects and the messages of the
// same ones sent one by one.
func TestPipelinesOfScripts(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		r := chance.Rand(t)
		connect := func() (c, listener *testClient, store *db.Store) {
			store = openStore(t)
			dial := serveStoreBy(t, store, server.Options{Transport: transport})
			c, listener = dial(), dial()
			listener.send("SUBSCRIBE channel\r\n")
			listener.expect("*3\r\n$9\r\nsubscribe\r\n$7\r\nchannel\r\n:1\r\n")
			return c, listener, store
		}
		together, heard, store := connect()
		alone, heardAlone, _ := connect()
		contents := ""
		for i := range 6 {
			contents += fmt.Sprintf("GET k%d\r\nHGETALL hk%d\r\n", i, i)
		}
		contents = "ECHO begin\r\n" + contents + "LRANGE list 0 -1\r\nSELECT 1\r\n" + contents + "SELECT 0\r\nECHO end\r\n"
		requests, commits := 0, store.Stats().Commits
		for range 60 {
			pipeline, want := "", ""
			for range 1 + r.IntN(40) {
				request := oneOfPipeline(r)
				pipeline += request
				alone.send(request + "ECHO end\r\n")
				want += strings.TrimSuffix(alone.upTo(end), end)
				requests++
			}
			together.send(pipeline + "ECHO end\r\n")
			if got := together.upTo(end); got != want+end {
				t.Fatalf("of %q\ntogether %q\nalone    %q", pipeline, got, want)
			}
		}
		alone.send(contents)
		together.send(contents)
		if got, want := together.upTo(end), alone.upTo(end); got != want {
			t.Errorf("together the store holds %q\nalone %q", got, want)
		}
		for _, c := range []*testClient{alone, together} {
			c.send("PUBLISH channel end\r\n")
			c.expect(":1\r\n")
		}
		if got, want := heard.upTo(end), heardAlone.upTo(end); got != want {
			t.Errorf("together %q was published\nalone %q", got, want)
		}
		t.Logf("%d requests in %d commits", requests, store.Stats().Commits-commits)
	})
}

// upTo reads up to a text.
func (c *testClient) upTo(end string) string {
	var b strings.Builder
	for !strings.HasSuffix(b.String(), end) {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.t.Fatalf("%q, %v", b.String(), err)
		}
		b.WriteString(line)
	}
	return b.String()
}
