package replication_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stavedb/stave/internal/resp"
)

// falseMaster is a master that sends an empty data set, and then some commands, to each replica.
func falseMaster(t *testing.T, commands ...[]string) (port string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mark := strings.Repeat("m", 40)
	stream := fmt.Appendf(nil, "+FULLRESYNC %s 1\r\n$EOF:%s\r\nREDIS0010\xff\x00\x00\x00\x00\x00\x00\x00\x00%s", strings.Repeat("a", 40), mark, mark)
	for _, c := range commands {
		stream = resp.AppendCommandStrings(stream, c...)
	}
	serve := func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
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
				reply = []byte("+OK\r\n")
			case "PSYNC":
				reply = stream
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

// TestMasterMayNotAdminister: what a master sends changes data and nothing else, whoever it is.
func TestMasterMayNotAdminister(t *testing.T) {
	for _, command := range []string{"SHUTDOWN NOSAVE", "CONFIG SET maxmemory 12345678", "ACL SETUSER intruder on nopass +@all", "REPLICAOF NO ONE", "DEBUG SLEEP 1", "MERGE"} {
		t.Run(command, func(t *testing.T) {
			port := falseMaster(t, []string{"SELECT", "0"}, []string{"SET", "a", "1"}, strings.Fields(command))
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
