package server_test

import (
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// wireText is a command as a client sends it.
func wireText(words ...string) string {
	return string(resp.AppendCommandStrings(nil, words...))
}

// TestLongScriptInLineForRoom: a script that has waited for room, has got it and now runs for long keeps nobody else
// waiting for whom there is room, too.
func TestLongScriptInLineForRoom(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address, _ := longReplies(t, transport, server.Options{WriteTimeout: time.Hour}, time.Minute)
		runs, reads, other, holder := dial(t, address), dial(t, address), dial(t, address), dial(t, address)
		for _, client := range []*testClient{runs, reads, other, holder} {
			client.send("CLIENT NO-EVICT ON\r\n") // the limit of all clients' memory is below what they have
			client.expect("+OK\r\n")
		}
		holder.send("MGET k0 k1 k2 k3 k4 k5 k6 k7 k0 k1 k2 k3 k4 k5 k6 k7\r\n")
		for v.RepliesTaken() < 8*mib {
			time.Sleep(time.Millisecond)
		}
		limit := func(text string) {
			other.send("CONFIG SET maxmemory-clients " + text + "\r\n")
			other.expect("+OK\r\n")
		}
		limit("8mb")
		runs.send(wireText("EVAL", "local s = string.rep('x', 4194304) while true do end", "0"))
		time.Sleep(300 * time.Millisecond)
		other.send("SCRIPT KILL\r\n")
		other.expect("-NOTBUSY No scripts in execution right now.\r\n")
		limit("64mb")
		time.Sleep(500 * time.Millisecond) // now it runs
		reads.send("MGET k0 k1 k2 k3 k4 k5 k6 k7 k0 k1 k2 k3 k4 k5 k6 k7 k0 k1 k2 k3 k4 k5 k6 k7\r\n")
		time.Sleep(300 * time.Millisecond)
		_ = holder.Close()
		_ = reads.SetReadDeadline(time.Now().Add(time.Minute))
		reads.expect("*24\r\n$1048576\r\n")
		other.send("SCRIPT KILL\r\n")
		other.expect("+OK\r\n")
		runs.expect("-ERR Script killed by user")
	})
}
