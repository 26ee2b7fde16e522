package server_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/server"
)

// TestUnpauseWakesAll: a client whose command comes just when a long pause ends does not wait for the time that the
// pause had left.
func TestUnpauseWakesAll(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		admin := v.NewSession()
		var done [4]atomic.Int64
		var stop atomic.Bool
		var work sync.WaitGroup
		for i := range done {
			c := dial(t, address)
			work.Go(func() {
				for !stop.Load() {
					if _, err := c.Write([]byte("PING\r\n")); err != nil {
						return
					}
					if c.line() != "+PONG" {
						return
					}
					done[i].Add(1)
				}
			})
		}
		for range rounds {
			do(admin, "CLIENT", "PAUSE", "1000000000")
			do(admin, "CLIENT", "UNPAUSE")
			for i := range done {
				before, began := done[i].Load(), time.Now()
				for done[i].Load() == before {
					if time.Since(began) > 10*time.Second {
						t.Fatalf("client %d waits though the pause is over", i)
					}
					time.Sleep(100 * time.Microsecond)
				}
			}
		}
		stop.Store(true)
		work.Wait()
	})
}
