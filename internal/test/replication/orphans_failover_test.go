package replication_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stavedb/stave/internal/resp"
)

// falseSuccessor is a replica that has to take over, and sends an empty data set to the former master. info is its INFO, each time
// that it is asked.
func falseSuccessor(t *testing.T, info func(asked int) string) (port string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mark := strings.Repeat("m", 40)
	file := fmt.Sprintf("+FULLRESYNC %s 1000000\r\n$EOF:%s\r\nREDIS0010\xff\x00\x00\x00\x00\x00\x00\x00\x00%s", strings.Repeat("b", 40), mark, mark)
	asked := 0
	answer := func(r *resp.Reply) string {
		switch strings.ToUpper(string(r.Items[0].Text)) {
		case "PING":
			return "+PONG\r\n"
		case "INFO":
			text := info(asked)
			asked++
			return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
		case "PSYNC":
			return file
		case "REPLCONF":
			if string(r.Items[1].Text) != "ACK" {
				return "+OK\r\n"
			}
		}
		return ""
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			closed := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
			for in := resp.NewDecoder(conn); ; {
				r, err := in.Read()
				if err != nil {
					break
				}
				_, _ = conn.Write([]byte(answer(&r)))
			}
			closed()
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-done })
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return port
}

// TestOrphansOfForcedFailover: a successor that is forced to take over may get more of the stream after it was asked how far it is.
// What it has when it takes over is not alone.
func TestOrphansOfForcedFailover(t *testing.T) {
	dir := t.TempDir()
	first := serveIn(t, dir)
	var id atomic.Value
	var had, has atomic.Int64 // the offset of the successor when it was asked, and when it took over
	port := falseSuccessor(t, func(asked int) string {
		if asked == 0 {
			return fmt.Sprintf("role:slave\r\nmaster_replid:%s\r\nmaster_repl_offset:%d\r\nsecond_repl_offset:-1\r\n", id.Load(), had.Load())
		}
		return fmt.Sprintf("role:master\r\nmaster_replid:%s\r\nmaster_repl_offset:1000000\r\nmaster_replid2:%s\r\nsecond_repl_offset:%d\r\n",
			strings.Repeat("b", 40), id.Load(), has.Load()+1)
	})
	replica := dial(t, first.address)
	replica.must("REPLCONF", "listening-port", port, "capa", "eof", "capa", "psync2")
	if _, err := replica.conn.Write(resp.AppendCommandStrings(nil, "PSYNC", "?", "-1")); err != nil {
		t.Fatal(err)
	}
	replica.until("$EOF:")
	await(t, "it is online", func() bool {
		_, _ = replica.conn.Write(resp.AppendCommandStrings(nil, "REPLCONF", "ACK", "0")) // what comes before the end of the file does not count
		return strings.Contains(first.info("replication", "slave0"), "state=online")
	})
	id.Store(first.info("replication", "master_replid"))
	first.must("SET", "had", "1")
	had.Store(offset(t, first.client))
	first.must("SET", "got", "1")
	has.Store(offset(t, first.client))
	first.must("SET", "lacked", "1")
	first.must("FAILOVER", "TO", "127.0.0.1", port, "FORCE", "TIMEOUT", "100")
	await(t, "it is synchronized", func() bool { return first.must("DBSIZE") == "0" })
	o := onlyOrphans(t, dir)
	var sets []string
	for _, args := range o.commands {
		if args[0] == "SET" {
			sets = append(sets, args[1])
		}
	}
	if o.From != has.Load() || o.Before != 0 || o.Commands != 1 || !slices.Equal(sets, []string{"lacked"}) { // the question how far it is comes after that
		t.Errorf("it says %+v, with %q; the successor had all up to %d", o.Header, o.commands, has.Load())
	}
	wantInfo(t, first.client, "master_failover_state", "no-failover")
	wantInfo(t, first.client, "replica_link_failures", "0")
	first.must("REPLICAOF", "NO", "ONE")
}
