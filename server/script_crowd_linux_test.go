package server_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// TestCrowdOfScripts: scripts of many clients that need the same locks take little longer, together, than one after the
// other: those that have waited for their locks are not taken for scripts that last, for whose end the others wait by
// looking now and then.
func TestCrowdOfScripts(t *testing.T) {
	const clients, each, most = 200, 10, 4
	script := evalText("redis.call('INCR', 'not' .. 'declared') for i = 1, 3000 do end return redis.call('INCR', 'n')", "0")
	_, address := serve(t, &server.Options{Transport: server.TransportGoroutines})
	run := func(clients, each int) time.Duration {
		var all []*testClient
		for range clients {
			all = append(all, dial(t, address))
		}
		began := time.Now()
		var work sync.WaitGroup
		for _, c := range all {
			work.Go(func() {
				for range each {
					c.send(script)
					if line, err := c.in.ReadString('\n'); !strings.HasPrefix(line, ":") || err != nil {
						t.Errorf("%q, %v", line, err)
						return
					}
				}
			})
		}
		work.Wait()
		return time.Since(began)
	}
	ratio := 0.0
	for range 5 {
		alone := run(1, clients*each)
		if ratio = float64(run(clients, each)) / float64(alone); ratio < most {
			t.Logf("%.1f times as long", ratio)
			return
		}
	}
	t.Errorf("%d clients take %.1f times as long as one, want less than %d", clients, ratio, most)
}
