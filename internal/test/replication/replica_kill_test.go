package replication_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/test/chance"
	"github.com/stavedb/stave/internal/test/redisserver"
)

// TestKillWhileFollowing: the replica is killed again and again in the middle of a stream of increments and pushes. Each
// time it goes on where it was, without a full synchronization, and at the end every one has been counted once.
func TestKillWhileFollowing(t *testing.T) {
	rng := chance.Rand(t)
	r := redisserver.StartMaster(t, "", "--repl-backlog-size", "64mb")
	master := dial(t, r.Socket)
	c := startChild(t)
	dial(t, c.address).must("REPLICAOF", "127.0.0.1", r.Port)
	awaitCaughtUp(t, master, dial(t, c.address))
	var work sync.WaitGroup
	stop := make(chan struct{})
	for i := range 3 {
		work.Go(func() {
			w := dial(t, r.Socket)
			n := strconv.Itoa(i)
			for round := 0; ; round++ {
				select {
				case <-stop:
					return
				default:
				}
				w.pipeline([]string{"INCR", "count:" + n}, []string{"RPUSH", "list:" + n, strconv.Itoa(round)}, []string{"MULTI"}, []string{"INCR", "a:" + n},
					[]string{"SELECT", strconv.Itoa(round % 3)}, []string{"INCR", "b:" + n}, []string{"EXEC"}, []string{"XADD", "stream:" + n, "*", "f", "v"}, []string{"SELECT", "0"})
			}
		})
	}
	kills := 6
	for range kills {
		time.Sleep(time.Duration(20+rng.IntN(200)) * time.Millisecond)
		c.kill()
		c.start()
	}
	close(stop)
	work.Wait()
	replica := dial(t, c.address)
	awaitCaughtUp(t, master, replica)
	wantSame(t, master, replica)
	if n := master.info("stats", "sync_full"); n != "1" {
		t.Errorf("%s full synchronizations, want the first alone", n)
	}
	if master.must("GET", "count:0") == "1" {
		t.Error("the master was hardly at work")
	}
}

// TestKillWhileLoading: a replica that is killed in a full synchronization has the old data, or the new.
func TestKillWhileLoading(t *testing.T) {
	rng := chance.Rand(t)
	r := redisserver.StartMaster(t, "")
	master := dial(t, r.Socket)
	master.must("DEBUG", "POPULATE", "30000", "key", "50")
	master.must("SET", "new", "1")
	old := 0
	for range 6 {
		c := startChild(t)
		replica := dial(t, c.address)
		replica.must("MSET", "old:1", "a", "old:2", "b")
		replica.must("REPLICAOF", "127.0.0.1", r.Port)
		time.Sleep(time.Duration(rng.IntN(250)) * time.Millisecond)
		c.kill()
		c.start()
		replica = dial(t, c.address)
		switch has := replica.must("MGET", "old:1", "old:2", "new"); has {
		case "[a b (nil)]":
			old++
		case "[(nil) (nil) 1]":
		default:
			t.Errorf("it has %s", has)
		}
		awaitCaughtUp(t, master, replica)
		if n := replica.must("DBSIZE"); n != "30001" {
			t.Errorf("%s keys", n)
		}
		c.kill()
	}
	t.Logf("%d of 6 had the old data", old)
}
