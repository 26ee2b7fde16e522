package server_test

import (
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// inLine is how many goroutines wait in line for locks on behalf of sessions.
func inLine() int {
	stacks := make([]byte, 16<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "server.(*Session).beginInLine.func1(")
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
