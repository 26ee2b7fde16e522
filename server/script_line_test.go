package server_test

import (
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
	"github.com/stavedb/stave/server"
)

// inLine is how many goroutines wait in line for locks on behalf of sessions.
func inLine() int {
	stacks := make([]byte, 16<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "scripts.(*Line).begin.func1(")
}

// TestLeaversTakeFewPlacesInLine: clients that come, wait for a lock and leave, while a transaction holds it for long
// and some script runs, leave no more goroutines than the line has places for; a client that stays gets the lock once
// it is free, and nothing waits then.
func TestLeaversTakeFewPlacesInLine(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		const places, clients, rounds = 16, 20, 4
		v, address := serve(t, &server.Options{Transport: transport}, func(v *server.Server) { v.PlacesInLine(places) })
		script := dial(t, address)
		script.send("EVAL \"while true do end\" 0\r\n")
		awaitScript(t, v, false)
		tx, err := v.Store().Begin(true, "k")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = tx.End(nil) }()
		most := 0
		for range rounds {
			arrived := fieldOf(t, v.Info("stats"), "total_net_input_bytes")
			leavers := make([]*testClient, clients)
			for i := range leavers {
				leavers[i] = dial(t, address)
				leavers[i].send("SET k v\r\n")
			}
			for fieldOf(t, v.Info("stats"), "total_net_input_bytes") < arrived+clients*len("SET k v\r\n") {
				time.Sleep(time.Millisecond)
			}
			for _, c := range leavers {
				_ = c.Conn.(*net.TCPConn).SetLinger(0) // a reset says that nobody waits for the reply
				_ = c.Close()
			}
			for deadline := time.Now().Add(time.Minute); fieldOf(t, v.Info("clients"), "connected_clients") > 1; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("clients that have left are still served")
				}
			}
			most = max(most, inLine())
		}
		t.Logf("%d clients that have left leave %d goroutines", rounds*clients, most)
		if most > places {
			t.Errorf("%d goroutines wait for clients that have left, with %d places", most, places)
		}
		stays := dial(t, address)
		stays.send("SET k w\r\n")
		time.Sleep(50 * time.Millisecond)
		if _, err := tx.End(nil); err != nil {
			t.Fatal(err)
		}
		stays.expect("+OK\r\n")
		for deadline := time.Now().Add(time.Minute); inLine() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines wait for a lock that is free", inLine())
			}
		}
		stays.send("GET k\r\n")
		stays.expect("$1\r\nw\r\n")
	})
}

// TestWriterComesBeforeLaterScripts: a script that reads all keys does not begin before a writer that has waited for one
// of its keys since before it came, though it could share the locks of the script that holds them; it reads what the
// writer has written. A script of other keys goes on.
func TestWriterComesBeforeLaterScripts(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		locked := make(chan struct{}, 1)
		logger := slog.New(signal{slog.DiscardHandler, "it has the locks", locked})
		v, address := serve(t, &server.Options{Transport: transport, Logger: logger})
		first, writer, later, admin := dial(t, address), dial(t, address), dial(t, address), dial(t, address)
		first.send(string(resp.AppendCommandStrings(nil, "EVAL", `redis.call("GET", KEYS[1]) redis.log(redis.LOG_WARNING, "it has the locks") while true do end`, "1", "k")))
		<-locked
		awaitScript(t, v, false)
		writer.send("SET k v\r\n")
		time.Sleep(100 * time.Millisecond)
		later.send(string(resp.AppendCommandStrings(nil, "EVAL", `return redis.call("EXISTS", "k")`, "0")))
		time.Sleep(100 * time.Millisecond)
		served := make(chan string, 3)
		for i := range cap(served) { // a key may share its lock, or its bit of a keySet, with k
			other := dial(t, address)
			other.send(string(resp.AppendCommandStrings(nil, "EVAL", `return redis.call("SET", KEYS[1], 1)`, "1", fmt.Sprint("another", i))))
			go func() {
				line, _ := other.in.ReadString('\n')
				served <- line
			}()
		}
		if line := <-served; line != "+OK\r\n" {
			t.Fatalf("a script of another key: %q", line)
		}
		admin.send("SCRIPT KILL\r\n")
		admin.expect("+OK\r\n")
		writer.expect("+OK\r\n")
		later.expect(":1\r\n")
	})
}
