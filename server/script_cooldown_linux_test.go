package server_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// TestScriptsForNothingCoolDown: a client whose scripts use up their stack gets a twentieth of the time for them, also within
// EXEC; one whose scripts fail, or take as long, gets all.
func TestScriptsForNothingCoolDown(t *testing.T) { eachTransport(t, scriptsForNothingCoolDown) }

func scriptsForNothingCoolDown(t *testing.T, transport server.Transport) {
	_, address := serve(t, &server.Options{Transport: transport})
	c := dial(t, address)
	const recursion = "local function f(n) return 1 + f(n + 1) end return f(0)"
	const works = "local t = {} for i = 1, 2e5 do t[i] = i end "
	// took is how long n requests have taken, and how long their scripts have.
	took := func(request string, n int, command string) (all, scripts time.Duration) {
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
		_, stats, _ = strings.Cut(stats, "cmdstat_"+command+":calls="+strconv.Itoa(n)+",usec=")
		usec, _, _ := strings.Cut(stats, ",")
		us, err := strconv.Atoi(usec)
		if err != nil {
			t.Fatalf("%s: %q: %v", command, usec, err)
		}
		return all, time.Duration(us) * time.Microsecond
	}
	for _, request := range []struct{ text, command string }{
		{evalText(recursion, "0"), "eval"},
		{"MULTI\r\n" + evalText(recursion, "0") + "EXEC\r\n", "exec"},
	} {
		if all, scripts := took(request.text, 20, request.command); all < 15*scripts {
			t.Errorf("%s: %v for scripts that took %v", request.command, all, scripts)
		}
	}
	for _, end := range []string{"error('x')", "return redis.error_reply('x')", "return 1"} {
		if all, scripts := took(evalText(works+end, "0"), 10, "eval"); all > 3*scripts+time.Second/4 {
			t.Errorf("%s: %v for scripts that took %v", end, all, scripts)
		}
	}
}
