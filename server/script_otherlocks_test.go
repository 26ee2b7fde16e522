package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/server"
)

// TestNoBusyForOthersLocks: while a script is overdue, who meets the lock of an ordinary command waits for that, and is
// not told BUSY.
func TestNoBusyForOthersLocks(t *testing.T) {
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		_, address := serve(t, &server.Options{Transport: transport})
		c := dial(t, address)
		c.send("CONFIG SET busy-reply-threshold 1\r\n")
		c.expect("+OK\r\n")
		dial(t, address).send(requestOf("EVAL", "redis.call('EXISTS', KEYS[1]) while true do end", "1", "held"))
		c.until("SET held 1", "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
		key := ""
		for i := 0; key == "" && i < 100; i++ { // one that shares no lock with the script's
			c.send(fmt.Sprintf("SET other%d 1\r\n", i))
			if line := c.line(); line == "+OK" {
				key = fmt.Sprint("other", i)
			}
		}
		set := requestOf("SET", key, strings.Repeat("v", 100<<10)) // not for a batch, nor for the loop
		var writers sync.WaitGroup
		for range 3 {
			w := dial(t, address)
			writers.Go(func() {
				for range 50 {
					w.send(set)
					if line := w.line(); line != "+OK" {
						t.Errorf("a key that no script holds: %s", line)
						return
					}
				}
			})
		}
		writers.Wait()
		c.until("SCRIPT KILL", "+OK")
	})
}
