package replication_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/db"
	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/server"
)

// asReplica asks a server to go on with a stream, and returns its first line: what follows is to be read. next is -1 for
// everything.
func asReplica(t *testing.T, address, id string, next int64) (conn net.Conn, in *bufio.Reader, line string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	in = bufio.NewReader(conn)
	if _, err := fmt.Fprintf(conn, "REPLCONF capa eof capa psync2\r\nPSYNC %s %d\r\n", id, next); err != nil {
		t.Fatal(err)
	}
	if line, err = in.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("REPLCONF: %q, %v", line, err)
	}
	for line = "\n"; line == "\n"; { // the master lives
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return conn, in, strings.TrimSpace(line)
}

// TestRestartBesideWriter: a program writes to its store while it begins to serve it. A replica that is told to go on gets
// all of that, or is told that it must get everything.
func TestRestartBesideWriter(t *testing.T) {
	rng := chance.Rand(t)
	store, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	goesOn, anew := 0, 0
	id, next := "?", int64(-1)
	for round := range 60 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := ln.Addr().String()
		ctx, cancel := context.WithCancel(context.Background())
		ended, wrote := make(chan error, 1), make(chan error, 1)
		value := fmt.Sprintf("v%d-", round)
		delay := time.Duration(rng.IntN(150)) * time.Microsecond
		go func() { ended <- server.Serve(ctx, ln, store, nil) }()
		if round%2 == 0 { // every other time it begins when the stream goes on already
			c := dial(t, address)
			c.must("PING")
			_ = c.conn.Close()
		}
		go func() {
			time.Sleep(delay)
			var err error
			for i := 0; i < 20 && err == nil; i++ {
				err = store.String("k").Put([]byte(value + strconv.Itoa(i)))
			}
			wrote <- err
		}()
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
		conn, in, line := asReplica(t, address, id, next)
		word := strings.Fields(line)
		switch word[0] {
		case "+CONTINUE":
			goesOn++
			id = word[1]
			next = readUntil(t, in, next, value, 20)
		case "+FULLRESYNC":
			anew++
			offset, err := strconv.ParseInt(word[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			id, next = word[1], skipFile(t, conn, in, offset)
		default:
			t.Fatal(line)
		}
		c := dial(t, address)
		await(t, "the replica follows", func() bool { return strings.Contains(c.info("replication", "slave0"), "state=online") })
		_ = c.conn.Close()
		cancel()
		next += drained(t, conn, in, next-1)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d went on, %d got everything", goesOn, anew)
	if goesOn == 0 {
		t.Error("none went on")
	}
}

// readUntil reads a stream until it has had so many values of a round, and returns the next offset.
func readUntil(t *testing.T, in *bufio.Reader, next int64, value string, n int) int64 {
	t.Helper()
	for i := range n {
		want := value + strconv.Itoa(i)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("%s is missing in the stream: %v", want, err)
			}
			next += int64(len(line))
			if strings.TrimSpace(line) == want {
				break
			}
		}
	}
	for range 2 { // KEEPTTL
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		next += int64(len(line))
	}
	return next
}

// skipFile reads the file of a full synchronization, and returns the next offset.
func skipFile(t *testing.T, conn net.Conn, in *bufio.Reader, offset int64) int64 {
	t.Helper()
	mark := ""
	for mark == "" {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		mark, _ = strings.CutPrefix(strings.TrimSpace(line), "$EOF:")
	}
	var file strings.Builder
	for !strings.HasSuffix(file.String(), mark) {
		b, err := in.ReadByte()
		if err != nil {
			t.Fatal(err)
		}
		file.WriteByte(b)
	}
	ack(t, conn, offset)
	return offset + 1
}

func ack(t *testing.T, conn net.Conn, offset int64) {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$%d\r\n%d\r\n", len(strconv.FormatInt(offset, 10)), offset); err != nil {
		t.Log(err) // it has closed the connection
	}
}

// drained reads the rest of the stream to its end, says now and then how much it has, and returns how much that was.
func drained(t *testing.T, conn net.Conn, in *bufio.Reader, offset int64) (n int64) {
	t.Helper()
	for {
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		line, err := in.ReadString('\n')
		n += int64(len(line))
		switch {
		case err == io.EOF || errors.Is(err, syscall.ECONNRESET): // an acknowledgement crossed the end
			return n
		case errors.Is(err, os.ErrDeadlineExceeded):
			ack(t, conn, offset+n)
		case err != nil:
			t.Fatal(err)
		}
	}
}
