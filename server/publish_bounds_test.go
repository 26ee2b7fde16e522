package server_test

import (
	"strings"
	"testing"

	"github.com/stavedb/stave/server"
)

// TestInvalidationsComeBeforeMessages: who is told of a write by a message or an event has been told before that its
// copy of the key is stale.
func TestInvalidationsComeBeforeMessages(t *testing.T) {
	v := newServer(t, openStore(t), nil)
	listener, s := v.NewSession(), v.NewSession()
	ask(s, "CONFIG SET notify-keyspace-events E$\r\n")
	ask(listener, "HELLO 3\r\nSUBSCRIBE m __keyevent@0__:set\r\nCLIENT TRACKING ON\r\n")
	for what, write := range map[string]string{
		"MULTI":    requestOf("MULTI") + requestOf("SET", "a", "1") + requestOf("PUBLISH", "m", "x") + requestOf("SET", "b", "1") + requestOf("EXEC"),
		"a script": requestOf("EVAL", "redis.call('SET', KEYS[1], 1) redis.call('PUBLISH', 'm', 'x')", "1", "a"),
		"SET":      requestOf("SET", "a", "1"),
	} {
		ask(listener, "GET a\r\n")
		ask(s, write)
		got := ask(listener, "PING\r\n")
		invalid, message := strings.Index(got, "invalidate"), strings.Index(got, "$7\r\nmessage")
		if invalid < 0 || message < 0 || message < invalid {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// TestRefusedMessageTakesNoRoom: a message that is too large leaves the room of a transaction to smaller ones.
func TestRefusedMessageTakesNoRoom(t *testing.T) {
	v := newServer(t, openStore(t), &server.Options{MaxQueue: 100_000})
	listener, s := v.NewSession(), v.NewSession()
	ask(listener, "SUBSCRIBE c\r\n")
	source := `local large = redis.pcall("PUBLISH", "c", string.rep("x", 200000)) return {large.err, redis.call("PUBLISH", "c", "small")}`
	if got := eval(s, source, "0"); !strings.Contains(got, "too large") || !strings.HasSuffix(got, ":1\r\n") {
		t.Errorf("got %q", got)
	}
	if got := ask(listener, "PING\r\n"); strings.Count(got, "message") != 1 {
		t.Errorf("got %q", got)
	}
}

// TestMissesOfATransactionAreBounded: a transaction keeps no misses that nobody listens to, and no more of the others
// than it may publish.
func TestMissesOfATransactionAreBounded(t *testing.T) {
	v := newServer(t, openStore(t), &server.Options{MaxQueue: 100_000})
	listener, s := v.NewSession(), v.NewSession()
	ask(s, "CONFIG SET notify-keyspace-events Em\r\n")
	const source = `for i = 1, tonumber(ARGV[1]) do redis.call("GET", KEYS[1]) end return "done"`
	if got := eval(s, source, "1", "none", "5000"); got != "$4\r\ndone\r\n" {
		t.Errorf("nobody listens: %q", got)
	}
	ask(listener, "SUBSCRIBE __keyevent@0__:keymiss\r\n")
	if got := eval(s, source, "1", "none", "100"); got != "$4\r\ndone\r\n" {
		t.Errorf("100 misses: %q", got)
	}
	if got := ask(listener, "PING\r\n"); strings.Count(got, "message") != 100 {
		t.Errorf("of 100 misses %d came", strings.Count(got, "message"))
	}
	if got := eval(s, source, "1", "none", "5000"); !strings.HasPrefix(got, "-ERR the messages of the transaction are too large") {
		t.Errorf("5000 misses: %q", got)
	}
}

// TestRefusedScriptPublishesNothing: also one that shares a transaction of reads with other commands of an event loop,
// or that EXEC executes.
func TestRefusedScriptPublishesNothing(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport, MaxReply: 100_000})
		listener, c := dial(t, address), dial(t, address)
		listener.send("SUBSCRIBE m\r\n")
		listener.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nm\r\n:1\r\n")
		source := "redis.call('GET', KEYS[1]) redis.call('PUBLISH', 'm', ARGV[1]) return string.rep('x', tonumber(ARGV[2]))"
		small := requestOf("EVAL", source, "1", "k", "small", "1")
		c.send("SET k v\r\n" + small + small)
		c.expect("+OK\r\n$1\r\nx\r\n$1\r\nx\r\n")
		large := requestOf("EVAL", source, "1", "k", "large", "200000")
		refused := "-ERR the reply is too large; ask for it in parts\r\n"
		for range 10 {
			c.send("GET k\r\n" + large + "GET k\r\n" + requestOf("MULTI") + "GET k\r\n" + large + "EXEC\r\n" + small)
			c.expect("$1\r\nv\r\n" + refused + "$1\r\nv\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\nv\r\n" + refused + "$1\r\nx\r\n")
		}
		for range 2 + 10 {
			listener.expect("*3\r\n$7\r\nmessage\r\n$1\r\nm\r\n$5\r\nsmall\r\n")
		}
	})
}
