package replication_test

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/resp"
)

// falseMaster is a master that sends an empty data set, at offset 1, and then some commands, to each replica. heard gets what
// each of them acknowledges, and may send more.
func falseMaster(t *testing.T, heard func(c net.Conn, offset int64), commands ...[]string) (port string) {
	mark := strings.Repeat("m", 40)
	stream := fmt.Appendf(nil, "+FULLRESYNC %s 1\r\n$EOF:%s\r\nREDIS0010\xff\x00\x00\x00\x00\x00\x00\x00\x00%s", strings.Repeat("a", 40), mark, mark)
	for _, c := range commands {
		stream = resp.AppendCommandStrings(stream, c...)
	}
	return playMaster(t, heard, stream)
}

// playMaster is a master that replies stream to PSYNC.
func playMaster(t *testing.T, heard func(c net.Conn, offset int64), stream []byte) (port string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve := func(c net.Conn) {
		defer c.Close()
		in, streams := bufio.NewReader(c), false
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			reply := []byte(nil)
			switch strings.ToUpper(strings.TrimSpace(line)) {
			case "PING":
				reply = []byte("+PONG\r\n")
			case "REPLCONF":
				if !streams {
					reply = []byte("+OK\r\n")
				}
			case "INFO":
				reply = []byte("$0\r\n\r\n")
			case "PSYNC":
				reply, streams = stream, true
			case "ACK":
				if offset, err := readNumber(in); err == nil && heard != nil {
					heard(c, offset)
				}
			}
			if _, err := c.Write(reply); err != nil {
				return
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			serve(c)
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-done })
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return port
}

// readNumber reads an argument that is a number.
func readNumber(in *bufio.Reader) (int64, error) {
	if _, err := in.ReadString('\n'); err != nil { // its length
		return 0, err
	}
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(line), 10, 64)
}

// TestMasterMayNotAdminister: what a master sends changes data and nothing else, whoever it is.
func TestMasterMayNotAdminister(t *testing.T) {
	for _, command := range []string{"SHUTDOWN NOSAVE", "CONFIG SET maxmemory 12345678", "ACL SETUSER intruder on nopass +@all", "REPLICAOF NO ONE", "DEBUG SLEEP 1", "MERGE"} {
		t.Run(command, func(t *testing.T) {
			port := falseMaster(t, nil, []string{"SELECT", "0"}, []string{"SET", "a", "1"}, strings.Fields(command))
			replica := startReplica(t)
			replica.must("REPLICAOF", "127.0.0.1", port)
			await(t, "the link stops", func() bool {
				return strings.Contains(replica.info("replication", "master_link_error"), "sends no such command")
			})
			want(t, replica, "[slave...", "ROLE")
			want(t, replica, "[maxmemory 0]", "CONFIG", "GET", "maxmemory")
			if users := replica.must("ACL", "USERS"); strings.Contains(users, "intruder") {
				t.Error(users)
			}
		})
	}
}

// TestAppliedIsAcknowledged: what a replica acknowledges each second has all in it that it has read by then, also where the
// master sends a PING about as often: one that waits for its replica to have all of a stream that goes no further has to see
// that.
func TestAppliedIsAcknowledged(t *testing.T) {
	var mu sync.Mutex
	var pinging sync.WaitGroup
	sent, first, level := int64(1), true, false
	stop := make(chan struct{})
	ping := resp.AppendCommandStrings(nil, "PING")
	pings := func(c net.Conn) {
		for {
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
			}
			mu.Lock()
			_, err := c.Write(ping)
			sent += int64(len(ping))
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}
	port := falseMaster(t, func(c net.Conn, offset int64) {
		mu.Lock()
		defer mu.Unlock()
		if first {
			first = false
			pinging.Go(func() { pings(c) })
			return
		}
		if offset > sent {
			t.Errorf("%d is acknowledged of %d", offset, sent)
		}
		level = level || offset == sent && sent > 1
	})
	replica := startReplica(t)
	replica.must("REPLICAOF", "127.0.0.1", port)
	await(t, "all is acknowledged", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return level
	})
	close(stop)
	pinging.Wait()
	replica.must("REPLICAOF", "NO", "ONE")
}
