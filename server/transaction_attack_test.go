package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// TestKillOfOneselfWithinExec: the transaction is carried out whole, its replies come, then the connection ends; others
// go on. A client that another one kills while it queues leaves nothing.
func TestKillOfOneselfWithinExec(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		listener, other := dial(t, address), dial(t, address)
		listener.send("SUBSCRIBE c\r\n")
		listener.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
		for i := range 20 {
			victim := dial(t, address)
			victim.send("CLIENT ID\r\n")
			id := strings.Trim(victim.line(), ":\r\n")
			kill := "CLIENT KILL ID " + id + " SKIPME no\r\n"
			victim.send("MULTI\r\nINCR n\r\nPUBLISH c m\r\n")
			victim.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n")
			if i%2 == 0 {
				victim.send(kill + "INCR n\r\nEXEC\r\nINCR n\r\n") // the last one comes too late
				victim.expect(fmt.Sprintf("+QUEUED\r\n+QUEUED\r\n*4\r\n:%d\r\n:1\r\n:1\r\n:%d\r\n", i+1, i+2))
				listener.expect("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n")
			} else {
				other.send(kill)
				other.expect(":1\r\n")
			}
			victim.expectEnd()
			awaitClients(t, v, 2)
		}
		other.send("GET n\r\nPUBLISH c last\r\n")
		other.expect("$2\r\n20\r\n:1\r\n")
		listener.expect("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$4\r\nlast\r\n")
	})
}

// TestKilledScriptThatPublished: SCRIPT KILL is an error of the script, before which its messages stand, as in Redis;
// they come once. A script that has written, and whose client is killed, is given up whole: neither the write nor the
// message is there.
func TestKilledScriptThatPublished(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		listener, other := dial(t, address), dial(t, address)
		other.send("CONFIG SET busy-reply-threshold 20\r\n")
		other.expect("+OK\r\n")
		listener.send("SUBSCRIBE c\r\n")
		listener.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
		for _, write := range []bool{false, true} {
			source := "redis.call('PUBLISH', 'c', 'early') while true do pcall(redis.call, 'GET', KEYS[1]) end"
			if write {
				source = "redis.call('SET', KEYS[1], 'v') redis.call('PUBLISH', 'c', 'early') while true do end"
			}
			victim := dial(t, address)
			victim.sendArray("EVAL", source, "1", "k")
			awaitScript(t, v, write)
			other.send("SCRIPT KILL\r\n")
			if write {
				if got := other.line(); !strings.HasPrefix(got, "-UNKILLABLE") {
					t.Errorf("SCRIPT KILL of one that has written: %q", got)
				}
				other.send("CLIENT KILL TYPE normal SKIPME yes\r\n")
				other.expect(":1\r\n")
				victim.expectEnd()
			} else {
				other.expect("+OK\r\n")
				if got := victim.line(); !strings.Contains(got, "Script killed by user") {
					t.Errorf("the script ended with %q", got)
				}
				_ = victim.Close()
				listener.expect("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nearly\r\n")
			}
			awaitClients(t, v, 2)
			other.send("PUBLISH c last\r\n")
			other.expect(":1\r\n")
			got := "-BUSY"
			for deadline := time.Now().Add(time.Minute); strings.HasPrefix(got, "-BUSY") && time.Now().Before(deadline); time.Sleep(time.Millisecond) { // until it is rolled back
				other.send("EXISTS k\r\n")
				got = other.line()
			}
			if got != ":0" {
				t.Errorf("EXISTS of what a killed script has written: %q", got)
			}
			listener.expect("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$4\r\nlast\r\n")
		}
	})
}
