package server_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// figure asks for a field of a client in CLIENT LIST until it is right.
func figure(t *testing.T, c *testClient, name, field string, right func(n int64) bool) {
	t.Helper()
	pattern := regexp.MustCompile(` name=` + name + ` .* ` + field + `=(\d+) `)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		line := pattern.FindStringSubmatch(c.bulk("CLIENT LIST\r\n"))
		if line == nil {
			t.Fatalf("no client %s", name)
		}
		n, err := strconv.ParseInt(line[1], 10, 64)
		if err == nil && right(n) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s of %s is %s", field, name, line[1])
			return
		}
	}
}

// bulk asks for a bulk string.
func (c *testClient) bulk(question string) string {
	c.t.Helper()
	c.send(question)
	head, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(head[1:]))
	if err != nil {
		c.t.Fatalf("%q", head)
	}
	text := make([]byte, n+2)
	for at := 0; at < len(text); {
		m, err := c.in.Read(text[at:])
		if err != nil {
			c.t.Fatal(err)
		}
		at += m
	}
	return string(text[:n])
}

func above(least int64) func(int64) bool { return func(n int64) bool { return n >= least } }
func exactly(want int64) func(int64) bool {
	return func(n int64) bool { return n == want }
}

// named connects a client with a name.
func named(t *testing.T, address, name string) *testClient {
	t.Helper()
	c := dial(t, address)
	c.send("CLIENT SETNAME " + name + "\r\n")
	c.expect("+OK\r\n")
	return c
}

// TestClientFigures: CLIENT LIST has the bytes that the buffers of other clients really hold, and INFO the largest of
// the last seconds.
func TestClientFigures(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		watcher := named(t, address, "watcher")
		idle := named(t, address, "idle")
		for _, field := range []string{"qbuf", "multi-mem", "obl", "oll", "omem"} {
			figure(t, watcher, "idle", field, exactly(0))
		}
		figure(t, watcher, "watcher", "qbuf", exactly(int64(len("CLIENT LIST\r\n"))))
		if text := idle.bulk("CLIENT INFO\r\n"); !strings.Contains(text, " qbuf=13 ") {
			t.Error(text)
		}

		text := watcher.bulk("CLIENT LIST\r\n")
		numbers := regexp.MustCompile(` fd=(\d+) `).FindAllStringSubmatch(text, -1)
		if len(numbers) != 2 || numbers[0][1] == numbers[1][1] {
			t.Errorf("not a descriptor each: %s", text)
		}
		for _, fd := range numbers {
			if file, err := os.Readlink("/proc/self/fd/" + fd[1]); err == nil && !strings.HasPrefix(file, "socket:") {
				t.Errorf("descriptor %s is of %s", fd[1], file)
			}
		}

		half := named(t, address, "half")
		part := fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$200000\r\n%s", strings.Repeat("x", 100_000))
		half.send(part)
		figure(t, watcher, "half", "qbuf", exactly(int64(len(part))))
		figure(t, watcher, "half", "qbuf-free", above(1000))
		figure(t, watcher, "half", "argv-mem", above(1))
		figure(t, watcher, "half", "tot-mem", above(100_000))
		if info := v.Info("clients"); !regexp.MustCompile(`client_recent_max_input_buffer:[12]\d{5}\r`).MatchString(info) {
			t.Error(info)
		}

		queueing := named(t, address, "queueing")
		queueing.send("MULTI\r\nSET k " + strings.Repeat("x", 10_000) + "\r\n")
		queueing.expect("+OK\r\n+QUEUED\r\n")
		figure(t, watcher, "queueing", "multi-mem", above(10_000))
		queueing.send("EXEC\r\n")
		queueing.expect("*1\r\n+OK\r\n")
		figure(t, watcher, "queueing", "multi-mem", exactly(0))

		watcher.send("SETRANGE big 8388607 x\r\n")
		watcher.expect(":8388608\r\n")
		silent := named(t, address, "silent")
		silent.send(strings.Repeat("GET big\r\n", 8))
		figure(t, watcher, "silent", "oll", above(1))
		figure(t, watcher, "silent", "omem", above(1<<20))
		figure(t, watcher, "silent", "rbp", above(1<<20))
		figure(t, watcher, "silent", "rbs", above(1))
		if info := v.Info("clients"); !regexp.MustCompile(`client_recent_max_output_buffer:\d{7,}\r`).MatchString(info) {
			t.Error(info)
		}
		_ = silent.Close()
		time.Sleep(100 * time.Millisecond)
		if info := v.Info("clients"); !regexp.MustCompile(`client_recent_max_output_buffer:\d{7,}\r`).MatchString(info) {
			t.Error("after the client has left:", info)
		}
	})
}

// TestOutputLimits: client-output-buffer-limit of the class normal ends a client for which too much waits: at once, or
// when it waits for too long. Others are left alone.
func TestOutputLimits(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		watcher := named(t, address, "watcher")
		set := func(limits string) {
			t.Helper()
			watcher.send("CONFIG SET client-output-buffer-limit \"normal " + limits + "\"\r\n")
			watcher.expect("+OK\r\n")
		}
		watcher.send("SETRANGE big 33554431 x\r\nSETRANGE small 99999 x\r\n")
		watcher.expect(":33554432\r\n:100000\r\n")

		// Nobody is disconnected without a limit, by one that is not reached, or for a soft one that is exceeded for a
		// shorter time.
		for _, limits := range []string{"0 0 0", "200000 0 0", "0 1000 600", "200000 1000 600"} {
			set(limits)
			c := dial(t, address)
			c.send("GET small\r\n")
			c.expect("$100000\r\n" + strings.Repeat("\x00", 99_999) + "x\r\n")
			c.send("PING\r\n")
			c.expect("+PONG\r\n")
		}
		set("1000000 0 0")
		hard := dial(t, address)
		hard.send("GET big\r\n")
		hard.expectCut(33_554_432)

		set("0 1000000 1")
		soft := dial(t, address)
		start := time.Now()
		soft.send("GET big\r\n")
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // it reads nothing until then
			if info := watcher.bulk("INFO stats\r\n"); strings.Contains(info, "client_output_buffer_limit_disconnections:2\r\n") {
				break
			} else if time.Now().After(deadline) {
				t.Fatal(info)
			}
		}
		soft.expectCut(33_554_432)
		if took := time.Since(start); took < time.Second {
			t.Errorf("ended after %s", took)
		}
	})
}

// expectCut reads to the end of the connection, which comes before so many bytes.
func (c *testClient) expectCut(n int) {
	c.t.Helper()
	read, text := 0, make([]byte, 1<<16)
	for {
		m, err := c.in.Read(text)
		if read += m; err != nil {
			if strings.Contains(err.Error(), "timeout") || read >= n {
				c.t.Errorf("%d bytes, then %v", read, err)
			}
			return
		}
	}
}

// TestKillOfNoAddress: an empty address is that of no client, as in Redis, and not of all.
func TestKillOfNoAddress(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		a, b := dial(t, address), dial(t, address)
		for _, word := range []string{"addr", "laddr"} {
			a.send(requestOf("CLIENT", "KILL", word, "", "SKIPME", "no"))
			a.expect(":0\r\n")
		}
		a.send(requestOf("CLIENT", "KILL", ""))
		a.expect("-ERR No such client\r\n")
		b.send("PING\r\n")
		b.expect("+PONG\r\n")
	})
}
