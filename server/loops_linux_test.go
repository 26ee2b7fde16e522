package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/server"
)

// numbersOfLoops are several on one processor each, and more than there are processors.
var numbersOfLoops = []int{2, 8}

// TestLoopsShowWhatWasAcknowledged: what one client's SET was acknowledged for is what another client reads, whichever loops
// serve them, and however it reads.
func TestLoopsShowWhatWasAcknowledged(t *testing.T) {
	for _, loops := range numbersOfLoops {
		t.Run(fmt.Sprint(loops), func(t *testing.T) {
			_, address := serveByLoop(t, server.Options{Loops: loops})
			var running sync.WaitGroup
			defer running.Wait()
			stop := make(chan struct{})
			defer close(stop)
			for range loops { // so that all loops are busy
				c := dial(t, address)
				running.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							c.send("SET other v\r\nGET other\r\n")
							c.expect("+OK\r\n$1\r\nv\r\n")
						}
					}
				})
			}
			clients := make([]*testClient, 2*loops)
			for i := range clients {
				clients[i] = dial(t, address)
			}
			for i := range 2000 {
				writer, reader := clients[i%len(clients)], clients[(i*7+1)%len(clients)]
				writer.send(fmt.Sprintf("SET k %06d\r\n", i))
				writer.expect("+OK\r\n")
				bulk := fmt.Sprintf("$6\r\n%06d\r\n", i)
				switch i % 3 {
				case 0:
					reader.send("GET k\r\n")
					reader.expect(bulk)
				case 1:
					reader.send("GET k\r\nGET k\r\n")
					reader.expect(bulk + bulk)
				default:
					reader.send("MULTI\r\nGET k\r\nEXEC\r\n")
					reader.expect("+OK\r\n+QUEUED\r\n*1\r\n" + bulk)
				}
			}
		})
	}
}

// TestLoopsTakeTurns: pipelines of several loops, each of which locks a fair part of all stripes, do not make one another
// leave their loops.
func TestLoopsTakeTurns(t *testing.T) {
	for _, loops := range numbersOfLoops {
		t.Run(fmt.Sprint(loops), func(t *testing.T) {
			v, address := serveByLoop(t, server.Options{Loops: loops})
			const rounds, pipeline = 300, 64
			var running sync.WaitGroup
			for n := range loops {
				c := dial(t, address)
				running.Go(func() {
					for round := range rounds {
						var out strings.Builder
						for i := range pipeline {
							fmt.Fprintf(&out, "INCR key:%d\r\n", (n*31+round*7+i*13)%512)
						}
						c.send(out.String())
						for range pipeline {
							if line := c.line(); !strings.HasPrefix(line, ":") {
								t.Error(line)
							}
						}
					}
				})
			}
			running.Wait()
			if left := v.Asides(); left > rounds*int64(loops)/10 { // the background has a stripe at times
				t.Errorf("%d of %d pipelines left their loop", left, rounds*loops)
			}
			c, sum := dial(t, address), 0
			for i := range 512 {
				c.send(fmt.Sprintf("INCRBY key:%d 0\r\n", i))
				var n int
				if _, err := fmt.Sscanf(c.line(), ":%d", &n); err != nil {
					t.Fatal(err)
				}
				sum += n
			}
			if sum != loops*rounds*pipeline {
				t.Errorf("the sum is %d, want %d", sum, loops*rounds*pipeline)
			}
		})
	}
}
