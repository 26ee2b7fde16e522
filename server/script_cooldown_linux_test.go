package server_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

const (
	scriptWorks     = "local t = {} for i = 1, 2e5 do t[i] = i end "
	scriptOverflows = "local function f(n) return 1 + f(n + 1) end return f(0)"
)

// TestCooldown: a client whose scripts exhaust their stack gets a twentieth of the time for them, or waits for a second
// after each, also within EXEC and in one packet; a client whose scripts fail, or last as long, gets all the time.
func TestCooldown(t *testing.T) { eachTransport(t, cooldown) }

func cooldown(t *testing.T, transport server.Transport) {
	_, address := serve(t, &server.Options{Transport: transport})
	c := dial(t, address)
	// took is how long n requests of several commands each have taken for the client, and the commands in the server.
	took := func(request string, n int, command string, commands int) (all, scripts time.Duration) {
		t.Helper()
		c.resetStats()
		began := time.Now()
		for range n {
			c.send(request + "ECHO next\r\n")
			c.upTo("$4\r\nnext\r\n")
		}
		return time.Since(began), c.timeOf(command, n*commands)
	}
	for _, request := range []struct {
		text, command string
		n, commands   int
	}{
		{evalText(scriptOverflows, "0"), "eval", 20, 1},
		{"MULTI\r\n" + evalText(scriptOverflows, "0") + "EXEC\r\n", "exec", 20, 1},
		{strings.Repeat(evalText("for i = 1, 1e5 do local t = {} end "+scriptOverflows, "0"), 10) + "MULTI\r\nPING\r\nEXEC\r\n", "eval", 1, 10},
	} {
		all, scripts := took(request.text, request.n, request.command, request.commands)
		n := time.Duration(request.n * request.commands)
		if all < n*min(15*scripts/n, 800*time.Millisecond) {
			t.Errorf("%d of %s: %v for scripts that took %v", n, request.command, all, scripts)
		}
	}
	for _, end := range []string{"error('x')", "error('stack overflow')", "return redis.error_reply('x')", "pcall(function() " + scriptOverflows + " end)"} {
		if all, scripts := took(evalText(scriptWorks+end, "0"), 10, "eval", 1); all > 3*scripts+time.Second/4 {
			t.Errorf("%s: %v for scripts that took %v", end, all, scripts)
		}
	}
}

// resetStats resets what timeOf returns.
func (c *testClient) resetStats() {
	c.t.Helper()
	c.send("CONFIG RESETSTAT\r\n")
	c.expect("+OK\r\n")
}

// timeOf is how long so many calls of a command have taken in the server.
func (c *testClient) timeOf(command string, calls int) time.Duration {
	c.t.Helper()
	c.send("INFO commandstats\r\nECHO next\r\n")
	stats := c.upTo("$4\r\nnext\r\n")
	_, usec, _ := strings.Cut(stats, "cmdstat_"+command+":calls="+strconv.Itoa(calls)+",usec=")
	usec, _, _ = strings.Cut(usec, ",")
	us, err := strconv.Atoi(usec)
	if err != nil {
		c.t.Fatalf("%s: %q: %v", command, stats, err)
	}
	return time.Duration(us) * time.Microsecond
}

// TestCooldownOfOnePacket: the next command also waits if it came in one packet with a script that the server knows and
// that declares its keys, which makes a batch of it; and after a library that exhausts its stack or its time.
func TestCooldownOfOnePacket(t *testing.T) { eachTransport(t, cooldownOfOnePacket) }

func cooldownOfOnePacket(t *testing.T, transport server.Transport) {
	_, address := serve(t, &server.Options{Transport: transport})
	c := dial(t, address)
	hostile := strings.Repeat(scriptWorks, 2) + scriptOverflows
	known := func(script string) string {
		t.Helper()
		c.send(wireText("SCRIPT", "LOAD", script) + "ECHO next\r\n")
		c.upTo("$4\r\nnext\r\n")
		return evalText(script, "1", "k")
	}
	for _, packet := range []struct{ name, text string }{
		{"a script and a command", known(hostile)},
		{"a script and a transaction", known("local a "+hostile) + "MULTI\r\nEXEC\r\n"},
		{"a library that exhausts its stack", wireText("FUNCTION", "LOAD", "#!lua name=l\n"+hostile)},
		{"a library that exhausts its time", wireText("FUNCTION", "LOAD", "#!lua name=l\nwhile true do end")},
	} {
		began := time.Now()
		c.send(packet.text + "ECHO next\r\n")
		if c.upTo("$4\r\nnext\r\n"); time.Since(began) < 900*time.Millisecond {
			t.Errorf("%s: all were answered after %v", packet.name, time.Since(began))
		}
	}
}

// TestCooldownWithinABatch: the scripts of a batch wait for each other.
func TestCooldownWithinABatch(t *testing.T) { eachTransport(t, cooldownWithinABatch) }

func cooldownWithinABatch(t *testing.T, transport server.Transport) {
	_, address := serve(t, &server.Options{Transport: transport})
	c := dial(t, address)
	batch := ""
	const scripts = 20
	for i := range scripts {
		script := "local x = " + strconv.Itoa(i) + " " + scriptOverflows
		c.send(wireText("SCRIPT", "LOAD", script) + "ECHO next\r\n")
		c.upTo("$4\r\nnext\r\n")
		batch += evalText(script, "1", "k")
	}
	c.resetStats()
	began := time.Now()
	c.send(batch)
	for range scripts {
		c.line()
	}
	all := time.Since(began)
	if took := c.timeOf("eval", scripts); all < 10*took {
		t.Errorf("the replies of scripts that took %v came within %v", took, all)
	}
}

// TestKilledInALongPipeline: of a pipeline of commands that wait one after the other, and that is longer than the server
// reads meanwhile, replies arrive one by one, and nothing more is executed once the client is killed.
func TestKilledInALongPipeline(t *testing.T) { eachTransport(t, killedInALongPipeline) }

func killedInALongPipeline(t *testing.T, transport server.Transport) {
	v, address := serve(t, &server.Options{Transport: transport}, func(v *server.Server) { v.PauseAt(16 << 10) })
	other := dial(t, address)
	for _, waits := range []string{evalText("for i = 1, 2e4 do local t = {} end "+scriptOverflows, "0"), wireText("BLPOP", strings.Repeat("x", 100), "0.03")} {
		c := dial(t, address)
		go func() { _, _ = c.Conn.Write([]byte(strings.Repeat(waits+"INCR count\r\n", 500))) }()
		c.line()
		c.expect(":1\r\n")
		count := func() string {
			other.send("GET count\r\n")
			other.line()
			return other.line()
		}
		if now := count(); len(now) > len("99\r\n") {
			t.Errorf("%.40q: the first reply arrived when count was %q", waits, now)
		}
		other.send("CLIENT KILL ADDR " + c.Conn.LocalAddr().String() + "\r\n")
		other.expect(":1\r\n")
		awaitClients(t, v, 1)
		killed := count()
		time.Sleep(300 * time.Millisecond)
		if now := count(); now != killed {
			t.Errorf("%.40q: killed when count was %q, and then it was %q", waits, killed, now)
		}
		other.send("DEL count\r\n")
		other.expect(":1\r\n")
	}
}

// TestEndOfCooldown: a client that cools down gets its replies at once, and its connection ends at once when it leaves or
// is killed; what it has sent after the script is not executed then, as during CLIENT PAUSE.
func TestEndOfCooldown(t *testing.T) { eachTransport(t, endOfCooldown) }

func endOfCooldown(t *testing.T, transport server.Transport) {
	v, address := serve(t, &server.Options{Transport: transport})
	other := dial(t, address)
	cools := evalText(strings.Repeat(scriptWorks, 4)+scriptOverflows, "0")
	for _, how := range []string{"stays", "leaves", "is killed"} {
		c := dial(t, address)
		c.send("CLIENT SETNAME it\r\nSET before 1\r\n" + cools + "INCR after\r\n")
		c.expect("+OK\r\n+OK\r\n")
		c.line()
		began := time.Now()
		other.send("GET after\r\n")
		other.expect("$-1\r\n")
		after := "$-1\r\n"
		switch how {
		case "stays":
			if c.expect(":1\r\n"); time.Since(began) < 400*time.Millisecond {
				t.Errorf("the next command was executed after %v", time.Since(began))
			}
			after = "$1\r\n1\r\n"
		case "is killed":
			other.send("CLIENT KILL ADDR " + c.Conn.LocalAddr().String() + "\r\n")
			other.expect(":1\r\n")
		}
		_ = c.Close()
		awaitClients(t, v, 1)
		if took := time.Since(began); how != "stays" && took > 800*time.Millisecond {
			t.Errorf("the client %s, and has ended after %v", how, took)
		}
		other.send("GET after\r\nDEL after\r\n")
		other.expect(after)
		other.line()
	}
}
