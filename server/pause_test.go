package server_test

import (
	"strings"
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

// TestPauseOfFlaggedScripts: a pause of writes stops scripts and functions but those whose flags say that they write
// nothing, also within EXEC.
func TestPauseOfFlaggedScripts(t *testing.T) {
	const reads, writes, plain = "#!lua flags=no-writes\nreturn 1", "#!lua\nreturn 1", "return 1"
	eachTransport(t, func(t *testing.T, transport server.Transport) {
		v, address := serve(t, &server.Options{Transport: transport})
		admin := v.NewSession()
		library := `#!lua name=l
redis.register_function{function_name='reads', callback=function() return 1 end, flags={'no-writes'}}
redis.register_function('writes', function() return 1 end)`
		if got := do(admin, "FUNCTION", "LOAD", library); got != "$1\r\nl\r\n" {
			t.Fatal(got)
		}
		sha := func(source string) string {
			return strings.TrimSpace(strings.SplitN(do(admin, "SCRIPT", "LOAD", source), "\r\n", 2)[1])
		}
		for _, tt := range []struct {
			args  []string
			waits bool
		}{
			{[]string{"EVAL", reads, "0"}, false}, {[]string{"EVALSHA", sha(reads), "0"}, false}, {[]string{"FCALL", "reads", "0"}, false},
			{[]string{"FCALL", "READS", "0"}, false}, {[]string{"EVAL_RO", plain, "0"}, false}, {[]string{"EVALSHA_RO", sha(plain), "0"}, false},
			{[]string{"FCALL_RO", "reads", "0"}, false}, {[]string{"GET", "k"}, false},
			{[]string{"EVAL", plain, "0"}, true}, {[]string{"EVAL", writes, "0"}, true}, {[]string{"EVALSHA", sha(writes), "0"}, true},
			{[]string{"EVALSHA", strings.Repeat("0", 40), "0"}, true}, {[]string{"FCALL", "writes", "0"}, true}, {[]string{"FCALL", "unknown", "0"}, true},
			{[]string{"SET", "k", "v"}, true}, {[]string{"PFCOUNT", "k"}, true}, {[]string{"PUBLISH", "c", "m"}, true},
		} {
			for _, within := range []bool{false, true} {
				do(admin, "CLIENT", "PAUSE", "1000000000", "WRITE")
				c := dial(t, address)
				if within {
					c.sendArray("MULTI")
				}
				c.sendArray(tt.args...)
				if within {
					c.sendArray("EXEC")
				}
				c.send("PING\r\n")
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for line := ""; line != "+PONG\r\n"; {
						var err error
						if line, err = c.in.ReadString('\n'); err != nil {
							return // the test has failed
						}
					}
				}()
				patience := time.Minute
				if tt.waits {
					patience = 30 * time.Millisecond
				}
				select {
				case <-ended:
					if tt.waits {
						t.Errorf("%.30q did not wait; within EXEC: %t", tt.args, within)
					}
				case <-time.After(patience):
					if !tt.waits {
						t.Fatalf("%.30q waits; within EXEC: %t", tt.args, within)
					}
				}
				do(admin, "CLIENT", "UNPAUSE")
				<-ended
				c.Close()
			}
		}
	})
}
