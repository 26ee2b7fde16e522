package server_test

import (
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// TestScriptOfABatchWithoutRoom: a script that shares a transaction with other commands waits for room for its reply, as
// one alone does; it is executed once, and its messages are sent once.
func TestScriptOfABatchWithoutRoom(t *testing.T) { eachTransport(t, scriptOfABatchWithoutRoom) }

func scriptOfABatchWithoutRoom(t *testing.T, transport server.Transport) {
	v, address, _ := longReplies(t, transport, server.Options{WriteTimeout: time.Hour}, time.Minute)
	c, other, listener, holder := dial(t, address), dial(t, address), dial(t, address), dial(t, address)
	for _, client := range []*testClient{c, other, listener, holder} {
		client.send("CLIENT NO-EVICT ON\r\n") // the limit of all clients' memory is below what they have
		client.expect("+OK\r\n")
	}
	listener.send("SUBSCRIBE channel\r\n")
	listener.expect("*3\r\n$9\r\nsubscribe\r\n$7\r\nchannel\r\n:1\r\n")
	const script = "redis.call('INCR', KEYS[1]) redis.call('PUBLISH', 'channel', KEYS[1]) if ARGV[1] == '0' then return 0 end " +
		"local s = string.rep('x', 240000) return {#s, s, s, s, s, s, s, s, s}"
	c.send(evalText(script, "1", "before", "0"))
	c.expect(":0\r\n")
	c.send("SET x 0\r\n" + evalText(script, "1", "before", "0")) // it knows its locks
	c.expect("+OK\r\n:0\r\n")
	message := func(key string) string { return "*3\r\n$7\r\nmessage\r\n$7\r\nchannel\r\n" + "$6\r\n" + key + "\r\n" }
	listener.expect(message("before") + message("before"))
	holder.send("MGET k0 k1 k2 k3 k4 k5 k6 k7 k0 k1 k2 k3 k4 k5 k6 k7\r\n")
	for v.RepliesTaken() < 8*mib {
		time.Sleep(time.Millisecond)
	}
	c.send("CONFIG SET maxmemory-clients 8mb\r\n")
	c.expect("+OK\r\n")
	c.send("INCR x\r\n" + evalText(script, "1", "during", "1") + "INCR x\r\n")
	c.expect(":1\r\n")
	time.Sleep(300 * time.Millisecond)
	other.send("GET during\r\nGET x\r\n")
	other.expect("$-1\r\n$1\r\n1\r\n")
	other.send("CONFIG SET maxmemory-clients 32mb\r\n")
	other.expect("+OK\r\n")
	c.expect("*9\r\n:240000\r\n")
	other.send("GET during\r\nPUBLISH channel finish\r\n")
	other.expect("$1\r\n1\r\n:1\r\n")
	listener.expect(message("during") + message("finish"))
}
