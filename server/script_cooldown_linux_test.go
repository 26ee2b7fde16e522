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

// TestScriptsForNothingCoolDown: a client whose scripts use up their stack gets a twentieth of the time for them, or
// waits for a second, also within EXEC and in one packet; one whose scripts fail, or take as long, gets all.
func TestScriptsForNothingCoolDown(t *testing.T) { eachTransport(t, scriptsForNothingCoolDown) }

func scriptsForNothingCoolDown(t *testing.T, transport server.Transport) {
	_, address := serve(t, &server.Options{Transport: transport})
	c := dial(t, address)
	// took is how long n requests of several commands each have taken, and how long the commands have.
	took := func(request string, n int, command string, commands int) (all, scripts time.Duration) {
		t.Helper()
		c.send("CONFIG RESETSTAT\r\n")
		c.expect("+OK\r\n")
		began := time.Now()
		for range n {
			c.send(request + "ECHO next\r\n")
			c.upTo("$4\r\nnext\r\n")
		}
		all = time.Since(began)
		c.send("INFO commandstats\r\nECHO next\r\n")
		stats := c.upTo("$4\r\nnext\r\n")
		_, usec, _ := strings.Cut(stats, "cmdstat_"+command+":calls="+strconv.Itoa(n*commands)+",usec=")
		usec, _, _ = strings.Cut(usec, ",")
		us, err := strconv.Atoi(usec)
		if err != nil {
			t.Fatalf("%s: %q: %v", command, stats, err)
		}
		return all, time.Duration(us) * time.Microsecond
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

// TestCooldownOfOnePacket: the next command waits also where it came in one packet with a script that is known, or with
// several, and declares its keys, as a batch has them; and a library that cannot be loaded is such a script.
func TestCooldownOfOnePacket(t *testing.T) { eachTransport(t, cooldownOfOnePacket) }

func cooldownOfOnePacket(t *testing.T, transport server.Transport) {
	_, address := serve(t, &server.Options{Transport: transport})
	c := dial(t, address)
	for i, request := range []string{"EVAL next", "EVAL MULTI", "EVAL EVAL next", "FUNCTION next"} {
		packet, waits := "", 0
		for j, word := range strings.Fields(request) {
			source := "local x = " + strconv.Itoa(10*i+j) + " " + strings.Repeat(scriptWorks, 4) + scriptOverflows
			switch word {
			case "EVAL":
				c.send(wireText("SCRIPT", "LOAD", source) + "ECHO next\r\n")
				c.upTo("$4\r\nnext\r\n")
				packet += evalText(source, "1", "k")
				waits++
			case "FUNCTION":
				packet += wireText("FUNCTION", "LOAD", "#!lua name=l\n"+source)
				waits++
			case "MULTI":
				packet += "MULTI\r\nEXEC\r\n"
			}
		}
		began := time.Now()
		c.send(packet + "ECHO next\r\n")
		if c.upTo("$4\r\nnext\r\n"); time.Since(began) < time.Duration(waits)*400*time.Millisecond {
			t.Errorf("%s: all were answered after %v", request, time.Since(began))
		}
	}
}

// TestKilledInALongPipeline: a client that is killed executes nothing more of what it has sent, though its commands wait
// one after the other and more was sent than is read meanwhile.
func TestKilledInALongPipeline(t *testing.T) { eachTransport(t, killedInALongPipeline) }

func killedInALongPipeline(t *testing.T, transport server.Transport) {
	v, address := serve(t, &server.Options{Transport: transport}, func(v *server.Server) { v.PauseAt(16 << 10) })
	other, c := dial(t, address), dial(t, address)
	pipeline := strings.Repeat(evalText("for i = 1, 2e4 do local t = {} end "+scriptOverflows, "0")+"INCR behind\r\n", 500)
	go func() { _, _ = c.Conn.Write([]byte(pipeline)) }()
	c.line() // replies come while others wait
	c.expect(":1\r\n")
	other.send("CLIENT KILL ADDR " + c.Conn.LocalAddr().String() + "\r\n")
	other.expect(":1\r\n")
	awaitClients(t, v, 1)
	other.send("GET behind\r\n")
	other.line()
	behind := other.line()
	time.Sleep(300 * time.Millisecond)
	other.send("GET behind\r\n")
	other.line()
	if now := other.line(); now != behind || now == "500\r\n" {
		t.Errorf("killed at %q, and then %q", behind, now)
	}
}

// TestCooldownHoldsNothing: a client that cools down has its replies at once, and ends at once when it leaves or is
// killed; what it had sent behind is not executed then, as during CLIENT PAUSE.
func TestCooldownHoldsNothing(t *testing.T) { eachTransport(t, cooldownHoldsNothing) }

func cooldownHoldsNothing(t *testing.T, transport server.Transport) {
	v, address := serve(t, &server.Options{Transport: transport})
	other := dial(t, address)
	cools := evalText(strings.Repeat(scriptWorks, 4)+scriptOverflows, "0")
	for _, how := range []string{"stays", "leaves", "is killed"} {
		c := dial(t, address)
		c.send("CLIENT SETNAME it\r\nSET before 1\r\n" + cools + "INCR behind\r\n")
		c.expect("+OK\r\n+OK\r\n")
		c.line()
		began := time.Now()
		other.send("GET behind\r\n")
		other.expect("$-1\r\n")
		behind := "$-1\r\n"
		switch how {
		case "stays":
			if c.expect(":1\r\n"); time.Since(began) < 400*time.Millisecond {
				t.Errorf("the next command was executed after %v", time.Since(began))
			}
			behind = "$1\r\n1\r\n"
		case "is killed":
			other.send("CLIENT KILL ADDR " + c.Conn.LocalAddr().String() + "\r\n")
			other.expect(":1\r\n")
		}
		_ = c.Close()
		awaitClients(t, v, 1)
		if took := time.Since(began); how != "stays" && took > 800*time.Millisecond {
			t.Errorf("the client %s, and has ended after %v", how, took)
		}
		other.send("GET behind\r\nDEL behind\r\n")
		other.expect(behind)
		other.line()
	}
}
